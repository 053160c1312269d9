import { expect, test } from "vitest";
import {
  assembleImage,
  createLayer,
  digestOf,
  parseImageName,
  pushImage,
  RegistryClient,
} from "../index.ts";
import { oldRegistry } from "../testing/old-registry.ts";

const minute = 60_000;
const graceMs = 10 * minute;
const lanes = 4;
const pushesOfLane = 15;

test("pushes that share layers, and sweeps all the while: each push succeeds, and what is young is whole", async () => {
  const { registry, host, elapse } = await oldRegistry({
    retention: { graceMs, previousImages: 0 },
  });
  const client = new RegistryClient({ attempts: 1 });
  const pushed: { name: ReturnType<typeof parseImageName>; begun: number }[] = [];
  let elapsed = 0;
  const stop = new AbortController();
  const sweeping = (async () => {
    let removed = 0;
    while (!stop.signal.aborted)
      removed += (await registry.clean({ references: [], functions: [] })).manifests;
    return removed;
  })();
  const push = async (lane: number) => {
    for (let n = 0; n < pushesOfLane; n++) {
      // What was swept away comes back, in other company.
      const layers = await Promise.all(
        [`${n % 5}`, `of lane ${lane}: ${n % 3}`].map((content) =>
          createLayer([{ path: "file", content }]),
        ),
      );
      const image = assembleImage({ layers });
      const tag = digestOf(`${lane} ${n}`).slice("sha256:".length);
      const repository = parseImageName(`${host}/shop-function-${lane}:${tag}`);
      // Other lanes move the clock between a push and its answer: an image is at most as old as the beginning of its push.
      const begun = elapsed;
      await pushImage(client, image, repository);
      pushed.push({ name: repository, begun });
      elapsed += minute;
      elapse(minute);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => push(lane)));
  stop.abort();
  expect(await sweeping).toBeGreaterThan(0);
  const young = pushed.filter(({ begun }) => begun > elapsed - graceMs);
  expect(young.length).toBeGreaterThan(5);
  for (const { name } of young) {
    const { manifest } = await client.resolveImage(name);
    for (const layer of manifest.layers) await client.readBlob(name, layer, { limit: 10_000 });
  }
  elapse(graceMs + minute);
  await registry.clean({ references: [], functions: [] });
  expect(registry.metrics()).toMatch(/^spry_registry_storage_bytes 0$/m);
});
