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
