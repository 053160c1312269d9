/** Which NATS servers get credentials; the servers are a socket that writes down what it is sent. */
import { createServer, type Socket } from "node:net";
import { type AddressInfo } from "node:net";
import { ownAddresses } from "@spry/test-kit";
import { silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { natsQueue } from "./nats-queue.ts";

/** Greets as a server without TLS does. */
async function listener(): Promise<{ port: number; received: () => string }> {
  let received = "";
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => {
      received += data.toString();
      // It has seen enough.
      if (received.includes("CONNECT")) socket.end("-ERR 'Authorization Violation'\r\n");
    });
    socket.write(
      'INFO {"server_id":"a","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576}\r\n',
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, received: () => received };
}

const address = ownAddresses().find(
  ({ family, internal }) => family === "IPv4" && !internal,
)?.address;

const external = (server: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  NATS_EXTERNAL_SERVERS: server,
  NATS_EXTERNAL_REPLICAS: "1",
  NATS_EXTERNAL_USERNAME: "me",
  NATS_EXTERNAL_PASSWORD: "s3cret",
  ...more,
});
const installed = (server: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  NATS_SERVERS: server,
  NATS_REPLICAS: "1",
  NATS_TOKEN: "s3cret",
  ...more,
});
const open = (env: NodeJS.ProcessEnv) => natsQueue(env, silentLogger)!();

test
  .skipIf(address === undefined)
  .each<[what: string, env: (server: string) => NodeJS.ProcessEnv]>([
    ["of the Serverless object", (server) => external(`nats://${server}`)],
    ["of the values", (server) => installed(`nats://${server}`)],
  ])("servers %s do not get credentials without TLS", async (_, env) => {
  const { port, received } = await listener();
  const server = `${address}:${port}`;
  await expect(open(env(server))).rejects.toThrow(
    `nats://${server} would get the credentials without TLS: use tls://, or set allowPlaintext: true where the network itself is protected`,
  );
  expect(received()).toBe("");
});

test
  .skipIf(address === undefined)
  .each<[what: string, env: (server: string) => NodeJS.ProcessEnv]>([
    ["of the Serverless object", (server) => external(`tls://${server}`)],
    ["of the values", (server) => installed(`tls://${server}`)],
    [
      "with an authority",
      (server) => external(`nats://${server}`, { NATS_EXTERNAL_AUTHORITY: "ca" }),
    ],
  ])("servers that should speak TLS and do not get none either: %s", async (_, env) => {
  const { port, received } = await listener();
  await expect(open(env(`${address}:${port}`))).rejects.toThrow(/cannot be used/);
  expect(received()).not.toContain("s3cret");
});

test.each<[what: string, host: string, env: (server: string) => NodeJS.ProcessEnv]>([
  ["this machine's", "127.0.0.1", (server) => external(`nats://${server}`)],
  [
    "those that the object allows",
    address ?? "127.0.0.1",
    (server) => external(`nats://${server}`, { NATS_EXTERNAL_PLAINTEXT: "true" }),
  ],
  [
    "the installation's",
    address ?? "127.0.0.1",
    (server) => installed(`nats://${server}`, { NATS_PLAINTEXT: "true" }),
  ],
])("%s get them", async (_, host, env) => {
  const { port, received } = await listener();
  await expect(open(env(`${host}:${port}`))).rejects.toThrow(/cannot be used/);
  expect(received()).toContain("s3cret");
});
