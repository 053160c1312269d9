import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { startStatusServer } from "./status-server.ts";

test.each([
  [[], 200, "ok"],
  [["functions"], 500, "these control loops are stuck: functions"],
])("with %j stuck /healthz says %i", async (names, status, body) => {
  const server = await startStatusServer({
    host: "127.0.0.1",
    port: 0,
    isReady: () => true,
    stuck: async () => names,
  });
  try {
    const answer = await fetch(`http://127.0.0.1:${server.port}/healthz`);
    expect([answer.status, await answer.text()]).toEqual([status, body]);
  } finally {
    await server.close();
  }
});

test.each(["//", "http://", "/%"])(
  "a request for %s is answered, and the next one",
  async (path) => {
    const server = await startStatusServer({ host: "127.0.0.1", port: 0, isReady: () => true });
    try {
      const socket = connect(server.port, "127.0.0.1");
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /);
      expect((await fetch(`http://127.0.0.1:${server.port}/readyz`)).status).toBe(200);
    } finally {
      await server.close();
    }
  },
);
