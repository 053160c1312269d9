/** Set-up for this room's tests: real images, a real registry, real processes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  assembleImage,
  type ContainerConfig,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { onTestFinished } from "vitest";

/** The registry host that image names of the tests have. */
export const registryHost = "registry.spry.localhost";

export function temporaryDirectory(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-machine-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  return dir;
}

export interface TestRegistry {
  mirrors: Record<string, { url: string }>;
  /** Puts an image there; returns its name by digest. */
  push(name: string, files: Record<string, string>, config?: ContainerConfig): Promise<string>;
}

export async function startRegistry(): Promise<TestRegistry> {
  const registry = createRegistry({ dir: temporaryDirectory() });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await registry.close();
  });
  const mirrors: Record<string, { url: string }> = {
    [registryHost]: { url: `http://127.0.0.1:${server.port}` },
  };
  const client = new RegistryClient({ resolve: (host) => mirrors[host] });
  return {
    mirrors,
    async push(name, files, config = {}) {
      const contents = Object.entries(files).map(([file, text]) => ({
        path: file,
        content: Buffer.from(text),
      }));
      const layer = await createLayer(contents);
      const labels = { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` };
      const image = assembleImage({ layers: [layer], config: { Labels: labels, ...config } });
      const target = parseImageName(`${registryHost}/${name}`);
      const { digest } = await pushImage(client, image, target);
      return `${registryHost}/${target.repository}@${digest}`;
    },
  };
}

/** Waits until a check passes; its last failure is the test's. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 10_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
