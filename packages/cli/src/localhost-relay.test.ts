/** What is meant for localhost reaches the platform, by whichever address a client asks. */
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { networkInterfaces } from "node:os";
import { silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { relayLocalhost } from "./localhost-relay.ts";

const hasV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
);

test.skipIf(!hasV6)(
  "a request at ::1 is answered as at 127.0.0.1, and nothing else can listen there",
  async () => {
    const server = createServer((request, response) => request.pipe(response));
    onTestFinished(() => void server.close());
    const port = await new Promise<number>((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
    );
    const stop = await relayLocalhost([port, 0], silentLogger);
    const body = "x".repeat(1e6);
    const answer = await fetch(`http://[::1]:${port}`, { method: "POST", body });
    expect(await answer.text()).toBe(body);
    const other = createTcpServer();
    const taken = new Promise((resolve) => other.once("error", resolve));
    other.listen(port, "::1");
    expect(await taken).toMatchObject({ code: "EADDRINUSE" });
    stop();
    const refused = new Promise((resolve) => connect(port, "::1").once("error", resolve));
    expect(await refused).toMatchObject({ code: "ECONNREFUSED" });
  },
);

test.skipIf(!hasV6)(
  "a port of ::1 that another program has is passed over, with a word in the log",
  async () => {
    const other = createTcpServer();
    onTestFinished(() => void other.close());
    const port = await new Promise<number>((resolve) =>
      other.listen(0, "::1", () => resolve((other.address() as { port: number }).port)),
    );
    const log: string[] = [];
    const warn = (_fields: object, message: string) => void log.push(message);
    (await relayLocalhost([port], { ...silentLogger, warn }))();
    expect(log).toEqual(["the gateway does not listen at ::1"]);
  },
);
