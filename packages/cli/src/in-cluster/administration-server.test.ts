/** Who keeps a connection to the administration of events, and what happens when its port is taken. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources, silentLogger } from "@spry/kube";
import { certificateFor, freePort } from "@spry/test-kit";
import { expect, onTestFinished, test } from "vitest";
import { administrationService } from "../install/administration.ts";
import { administrationServer } from "./administration-server.ts";

const namespace = "kyma-system";
const encode = (text: string) => Buffer.from(text).toString("base64");

async function started(port: number) {
  const [proxy, own] = await Promise.all([certificateFor("front-proxy"), certificateFor("own")]);
  const frontProxy = { ca: proxy.crt, cert: proxy.crt, key: proxy.key };
  const api = await createApiServer({ dataDir: ":memory:", frontProxy });
  const client = new KubeClient(api.transport());
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  await client.create(resources.secrets, {
    metadata: { namespace, name: administrationService },
    data: {
      "tls.crt": encode(own.crt),
      "tls.key": encode(own.key),
      "ca.crt": encode(own.crt),
    },
  });
  const administration = administrationServer({ client, namespace, log: silentLogger, port });
  onTestFinished(async () => {
    await administration.close();
    await api.close();
  });
  administration.start((_request, response) => response.end("ok"));
  return { administration, proxy };
}

/** What comes back for a request; empty when the connection is cut. */
async function ask(options: ConnectionOptions): Promise<string> {
  const socket = connect({ host: "127.0.0.1", rejectUnauthorized: false, ...options });
  socket.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  let seen = "";
  socket.on("data", (data) => (seen += data.toString()));
  socket.on("error", () => {});
  await once(socket, "close");
  return seen;
}

test("only a client with the API server's certificate keeps a connection", async () => {
  const port = await freePort();
  const { proxy } = await started(port);
  const own = { port, cert: proxy.crt, key: proxy.key };
  await expect.poll(() => ask(own), { timeout: 10_000 }).toContain("200 OK");
  expect(await ask({ port })).toBe("");
  const stranger = await certificateFor("front-proxy");
  expect(await ask({ port, cert: stranger.crt, key: stranger.key })).toBe("");
  expect(await ask(own)).toContain("200 OK");
});

test("a port that is taken is a failure that ends the process", async () => {
  const other = createServer().listen(0, "0.0.0.0");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const { administration } = await started(port);
  expect((await administration.failed).message).toContain(`cannot listen at port ${port}`);
});
