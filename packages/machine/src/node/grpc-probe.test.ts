import { createServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { runProbe } from "./probes.ts";

/** A health service: answers for the service names that it is given, "" for the server as a whole. */
async function healthServer(services: Record<string, number>, code = 0): Promise<number> {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    let received = Buffer.alloc(0);
    stream.on("data", (chunk: Buffer) => (received = Buffer.concat([received, chunk])));
    stream.on("end", () => {
      const name = received.subarray(7).toString();
      const isKnown = headers[":path"] === "/grpc.health.v1.Health/Check" && name in services;
      const status = code || (isKnown ? 0 : 5);
      const head = { ":status": 200, "content-type": "application/grpc" };
      if (status !== 0)
        return stream.respond({ ...head, "grpc-status": status }, { endStream: true });
      stream.respond(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      const value = services[name] ?? 0;
      const message = value === 0 ? Buffer.alloc(0) : Buffer.of(8, value);
      stream.end(Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const target = {
  ip: "127.0.0.1",
  container: { name: "main" },
  exec: () => Promise.resolve({ exitCode: 0, output: "" }),
};

test.for([
  ["", 0, { success: true, message: "" }],
  ["good", 0, { success: true, message: "" }],
  ["bad", 0, { success: false, message: 'service unhealthy (responded with "NOT_SERVING")' }],
  ["unsure", 0, { success: false, message: 'service unhealthy (responded with "UNKNOWN")' }],
  ["absent", 0, { success: false, message: "error: health rpc probe failed: code 5" }],
  ["", 12, { success: false, message: expect.stringContaining("does not implement") }],
] as const)(
  "a gRPC probe of service %j, when the call ends with %i",
  async ([service, code, result]) => {
    const port = await healthServer({ "": 1, good: 1, bad: 2, unsure: 0 }, code);
    const probe = { grpc: { port, service }, timeoutSeconds: 15 };
    expect(await runProbe(probe, target)).toEqual(result);
  },
);

test("a gRPC probe of a port where nothing listens, or nothing answers, fails", async () => {
  expect(await runProbe({ grpc: { port: 1 } }, target)).toMatchObject({ success: false });
  const silent = (await import("node:net")).createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const result = await runProbe({ grpc: { port }, timeoutSeconds: 0.2 }, target);
  expect(result).toMatchObject({ success: false, message: expect.stringContaining("timeout") });
});
