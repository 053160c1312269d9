/** A builder that is killed while it sends: nothing half-made can be had, and the next try gets there. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildFunctionImage, builderEntry, parseImageName, pullImage } from "../index.ts";
import { builderEnvironment, given } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";

const megabyte = 1024 * 1024;

test("a builder killed in the middle of a push leaves no image, and the retry makes it", async () => {
  const parts = Array.from({ length: 24 }, (_, at) => [`part-${at}.bin`, randomBytes(megabyte)]);
  const files = { "handler.js": "exports.main = () => 1;", ...Object.fromEntries(parts) };
  const { build, client } = await given(files as Record<string, string | Buffer>);
  const { source, runtime, base, destination } = build;
  const args = Object.entries({
    source,
    runtime,
    base,
    destination,
    scratch: temporaryDirectory(),
  });
  for (let attempt = 0; attempt < 3; attempt++) {
    const flags = args.map(([name, value]) => `--${name}=${value}`);
    const child = spawn(process.execPath, [builderEntry, ...flags], {
      env: { ...builderEnvironment, SPRY_TERMINATION_LOG: join(build.scratch, "end") },
    });
    child.stdout.on("data", (chunk: Buffer) => {
      if (chunk.includes("pushing source layer")) child.kill("SIGKILL");
    });
    const [, signal] = (await once(child, "close")) as [number | null, string | null];
    expect(signal).toBe("SIGKILL");
    expect(await client.headManifest(parseImageName(destination))).toBeUndefined();
  }
  const { image } = await buildFunctionImage(build);
  const pulled = await pullImage(client, image, join(temporaryDirectory(), "image"));
  expect(pulled.size).toBeGreaterThan(24 * megabyte);
}, 60_000);
