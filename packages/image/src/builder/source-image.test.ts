import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRegistry, RegistryClient } from "../index.ts";
import { createSourceImage, fetchSourceImage } from "./source-image.ts";

test("a source goes to a registry once, and comes back as it was", async () => {
  const dir = mkdtempSync(join(tmpdir(), "source-image-"));
  const registry = createRegistry({ dir: join(dir, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  try {
    const client = new RegistryClient();
    const repository = `127.0.0.1:${server.port}/shop/hello`;
    const files = [
      { path: "lib/a.js", content: "a" },
      { path: "handler.js", content: "b" },
    ];
    const source = await createSourceImage(files, join(dir, "source.tar"));
    const again = await createSourceImage(files.toReversed(), join(dir, "again.tar"));
    expect(again.digest).toBe(source.digest);
    const { image, sentBytes } = await source.push(client, repository);
    expect(image).toBe(`${repository}@${source.digest}`);
    expect(sentBytes).toBeGreaterThan(0);
    expect(await again.push(client, repository)).toEqual({ image, sentBytes: 0 });

    await fetchSourceImage(client, image, join(dir, "out"));
    expect(readFileSync(join(dir, "out/lib/a.js"), "utf8")).toBe("a");
    // A container that is started again.
    await fetchSourceImage(client, image, join(dir, "out"));

    const gone = `${repository}@sha256:${"0".repeat(64)}`;
    await expect(fetchSourceImage(client, gone, join(dir, "gone"))).rejects.toThrow(
      "is no longer in the registry: deploy the directory again",
    );
    mkdirSync(join(dir, "full"));
    writeFileSync(join(dir, "full/handler.js"), "");
    await fetchSourceImage(client, gone, join(dir, "full"));
  } finally {
    await server.close();
    await registry.close();
  }
});
