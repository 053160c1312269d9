import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { Store } from "./store.ts";

/** Writes without pause, eight writers at once, and tells each object once it is acknowledged. */
const writer = `
  const { Store } = await import(process.argv[1]);
  const store = new Store(process.argv[2]);
  let next = 0;
  const write = async () => {
    for (;;) {
      const name = "o" + next++;
      await store.put({ collection: "/things", namespace: "ns", name }, undefined, { metadata: { name }, pad: "x".repeat(500) });
      process.stdout.write(name + "\\n");
    }
  };
  await Promise.all(Array.from({ length: 8 }, write));
`;

test("a process that is killed loses nothing that it acknowledged", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "crash-"));
  const module = path.join(import.meta.dirname, "store.ts");
  const child = spawn(process.execPath, ["--input-type=module", "-e", writer, module, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged: string[] = [];
  const ended = new Promise((resolve) => child.once("close", resolve));
  for await (const name of createInterface({ input: child.stdout })) {
    if (acknowledged.push(name) === 300) child.kill("SIGKILL");
  }
  await ended;
  const store = new Store(dataDir);
  const kept = new Set(store.list("/things").map(({ name }) => name));
  expect(acknowledged.filter((name) => !kept.has(name))).toEqual([]);
  expect(store.revision).toBeGreaterThanOrEqual(acknowledged.length);
  await store.close();
  rmSync(dataDir, { recursive: true });
});
