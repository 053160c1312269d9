import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { startUsageServer } from "./usage-server.ts";
import { readUsageToken } from "./usage-token.ts";

test("what is stored is reported to those who have the token, and to no client while there is none", async () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "usage-")), "token");
  let reports = 0;
  const server = await startUsageServer({
    port: 0,
    token: () => readUsageToken(file),
    usage: async () => {
      reports++;
      return { bytes: 1, repositories: [] } as never;
    },
    log: silentLogger,
  });
  onTestFinished(() => server.close());
  const status = async (authorization?: string, at = "/usage") => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const response = await fetch(`http://127.0.0.1:${server.port}${at}`, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  for (const authorization of [undefined, "Bearer ", "Bearer undefined", "Bearer secret"])
    expect(await status(authorization)).toBe(401);
  writeFileSync(file, "\n");
  expect(await status("Bearer \n".trim())).toBe(401);
  writeFileSync(file, "secret\n");
  for (const authorization of [undefined, "Bearer secre", "Bearer secret2", "Basic secret"])
    expect(await status(authorization)).toBe(401);
  expect(reports).toBe(0);
  expect(await status("Bearer secret")).toBe(200);
  expect(await status("Bearer secret", "/usage?x")).toBe(404);
  expect(reports).toBe(1);
});
