/**
 * What Pods cost the API server by itself, without the controllers that the platform's process also holds: a program of
 * its own for `bench -- api`, which prints bytes per 1,000 Pods. `node --expose-gc bench/api-memory.ts <pods>`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { pod } from "./api-objects.ts";
import { memoryOf } from "./memory.ts";

const count = Number(process.argv[2]);
const width = 32;
const dataDir = mkdtempSync(path.join(tmpdir(), "bench-api-memory-"));
const api = await createApiServer({ dataDir });
const serve = api.transport();

// The first thousand bring what every server has by then: compiled code, schemas, buffers.
await create("warm", 1000);
const before = used();
await create("p", count);
console.log(((used() - before) / count) * 1000);
await api.close();
rmSync(dataDir, { recursive: true });

async function create(prefix: string, many: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < many) {
      const body = JSON.stringify(pod(`${prefix}${next++}`));
      const headers = { "content-type": "application/json" };
      const url = "http://bench/api/v1/namespaces/default/pods";
      const response = await serve(new Request(url, { method: "POST", headers, body }));
      if (!response.ok) throw new Error(await response.text());
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** As the platform collects when it is idle. */
function used(): number {
  gc?.({ type: "major", flavor: "last-resort", execution: "sync" });
  return memoryOf(process.pid).pss;
}
