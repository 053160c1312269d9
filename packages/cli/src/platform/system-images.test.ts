import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  assembleImage,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { ensureSystemImages } from "./system-images.ts";

const pullAddress = "registry.spry.localhost";

test("an image that others have put under a system image's name is replaced, one of ours stays", async () => {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-system-images-"));
  const registry = createRegistry({ dir: path.join(dir, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await registry.close();
    rmSync(dir, { recursive: true });
  });
  const client = new RegistryClient({
    resolve: () => ({ url: `http://127.0.0.1:${server.port}` }),
  });
  const knownFile = path.join(dir, "system-images.json");
  const ensure = () =>
    ensureSystemImages(client, {
      pullAddress,
      scratch: path.join(dir, "scratch"),
      knownFile,
      log: silentLogger,
    });
  const head = (image: string) => client.headManifest(parseImageName(image));
  const plant = async (image: string) => {
    const layer = await createLayer([{ path: "evil", content: Buffer.from("evil") }]);
    return (await pushImage(client, assembleImage({ layers: [layer] }), parseImageName(image)))
      .digest;
  };

  const { builder, runtimes, digests } = await ensure();
  const { nodejs24 = "", python312 = "" } = runtimes;
  const planted = await plant(builder);
  const kept = await head(python312);
  for (const image of [nodejs24, `${pullAddress}/spry/nodejs24:latest`]) await plant(image);

  const again = await ensure();
  expect(again.builder).toBe(builder);
  for (const image of [builder, nodejs24, `${pullAddress}/spry/nodejs24:latest`])
    expect(await head(image)).not.toBe(planted);
  expect(await head(python312)).toBe(kept);
  expect(again.digests.get(builder)).toBe(await head(builder));
  expect(again.digests.get(builder)).toBe(digests.get(builder));

  // As an earlier version has left it, which did not remember.
  rmSync(knownFile);
  await plant(builder);
  await ensure();
  expect(await head(builder)).not.toBe(planted);
});
