import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../index.ts";

test("a start with more than its heap can hold ends with the reason, and not by a lack of memory", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "spry-too-large-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const server = await createApiServer({ dataDir });
  const client = new KubeClient(server.transport());
  for (let index = 0; index < 60; index++) {
    const data = { text: "x".repeat(1024 * 1024) };
    await client.create(resources.configMaps, {
      metadata: { namespace: "default", name: `large-${index}` },
      data,
    });
  }
  await server.close();
  const room = JSON.stringify(path.resolve(import.meta.dirname, "../index.ts"));
  const script = `import { createApiServer } from ${room};
    await createApiServer({ dataDir: ${JSON.stringify(dataDir)} }).catch(({ name, message }) => console.log(name, message));`;
  const heap = ["--max-old-space-size=48", "--max-semi-space-size=1"];
  const args = [...heap, "--input-type=module", "-e", script];
  const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stdout).toMatch(
    /^StoreTooLargeError the stored objects take 6\d\.\d MiB, more than this process can load$/m,
  );
});
