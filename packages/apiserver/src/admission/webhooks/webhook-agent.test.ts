import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { systemClock } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Store } from "../../store/store.ts";
import { WebhookConnections } from "./webhook-connections.ts";

let directory: string;
let store: Store;
const servers: Server[] = [];
const received: string[] = [];

const file = (name: string) => path.join(directory, name);
const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "ignore" });
const bundle = (name: string) => readFileSync(file(`${name}.crt`)).toString("base64");

const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(" ");

function authority(name: string, subject: string): void {
  const out = ["-keyout", file(`${name}.key`), "-out", file(`${name}.crt`), "-days", "2"];
  const extension = ["-addext", "basicConstraints=critical,CA:TRUE"];
  openssl("req", "-x509", ...newKey, "-subj", subject, ...out, ...extension);
}

interface Certificate {
  subject: string;
  by: string;
  names?: string;
  use?: string;
}

/** As Go writes it: without the authority's key identifier where subject and issuer are the same. */
function certificate(name: string, { subject, by, names, use }: Certificate): void {
  writeFileSync(
    file(`${name}.ext`),
    `subjectAltName=${names ?? "IP:127.0.0.1"}\nextendedKeyUsage=${use ?? "serverAuth"}\nauthorityKeyIdentifier=none\n`,
  );
  const request = ["-keyout", file(`${name}.key`), "-out", file(`${name}.csr`)];
  openssl("req", ...newKey, "-subj", subject, ...request);
  const signer = ["-CA", file(`${by}.crt`), "-CAkey", file(`${by}.key`), "-CAcreateserial"];
  const out = ["-extfile", file(`${name}.ext`), "-out", file(`${name}.crt`), "-days", "2"];
  openssl("x509", "-req", "-in", file(`${name}.csr`), ...signer, ...out);
}

async function post(server: string, trusted: string): Promise<string> {
  const { port } = await serving(server);
  const connections = new WebhookConnections(store, systemClock);
  const caBundle = bundle(trusted);
  const config = { url: `https://127.0.0.1:${port}/check`, caBundle };
  try {
    const first = await connections.post(config, `{"from":"${server}"}`, 5);
    // Once more, on a connection that was kept.
    expect(await connections.post(config, `{"from":"${server}"}`, 5)).toBe(first);
    return first;
  } catch (error) {
    return (error as Error).message;
  } finally {
    connections.close();
  }
}

async function serving(name: string): Promise<AddressInfo> {
  const key = readFileSync(file(`${name}.key`));
  const server = createServer(
    { key, cert: readFileSync(file(`${name}.crt`)) },
    (request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        received.push(text);
        response.end("answer");
      });
    },
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address() as AddressInfo;
}

const same = "/O=knative.dev/CN=webhook.default.svc";

beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "webhook-agent-"));
  store = new Store(":memory:");
  authority("ca", same);
  authority("foreign", same);
  authority("other", "/CN=other");
  certificate("good", { subject: same, by: "ca" });
  certificate("ordinary", { subject: "/CN=hook", by: "ca" });
  certificate("elsewhere", { subject: same, by: "ca", names: "DNS:elsewhere.example.com" });
  certificate("client", { subject: same, by: "ca", use: "clientAuth" });
  certificate("forged", { subject: same, by: "foreign" });
});
afterAll(async () => {
  for (const server of servers) server.close();
  await store.close();
  rmSync(directory, { recursive: true });
});

test.each([
  ["whose subject is its issuer's", "good", "ca"],
  ["of another subject", "ordinary", "ca"],
  ["that is itself in the bundle", "good", "good"],
])("a certificate %s is verified by its signature", async (_, server, trusted) => {
  expect(await post(server, trusted)).toBe("answer");
});

test.each([
  ["another authority of the same name", "forged", "ca", "certificate signed by unknown authority"],
  ["an authority of another name", "good", "other", "certificate signed by unknown authority"],
  ["another host", "elsewhere", "ca", "127.0.0.1 is not in the cert's list"],
  ["clients alone", "client", "ca", "certificate specifies an incompatible key usage"],
])("one for %s is refused before anything is sent", async (_, server, trusted, problem) => {
  const before = received.length;
  expect(await post(server, trusted)).toContain(problem);
  expect(received.length).toBe(before);
});

test.each(["localhost", "127.0.0.1", "0x7f.1", "169.254.169.254"])(
  "a Service that leads to %s is not called, whether something listens there or not",
  async (externalName) => {
    certificate("named", { subject: "/CN=hook", by: "ca", names: "DNS:hook.shop.svc" });
    const { port } = await serving("named");
    const place = { collection: "/services", namespace: "shop", name: "hook" };
    const metadata = { namespace: "shop", name: "hook" };
    const service = { kind: "Service", metadata, spec: { type: "ExternalName", externalName } };
    await store.put(place, store.get(place), service);
    const connections = new WebhookConnections(store, systemClock);
    const before = received.length;
    for (const each of [port, 1]) {
      const to = { namespace: "shop", name: "hook", port: each };
      const done = connections.post({ service: to, caBundle: bundle("ca") }, "{}", 5);
      await expect(done).rejects.toThrow(/: address [\d.:]+ is (?:loopback|link-local)/);
    }
    expect(received.length).toBe(before);
    connections.close();
  },
);
