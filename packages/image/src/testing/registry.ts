import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { onlyLogin } from "./only-login.ts";
import { createRegistry, type Registry, type RegistryOptions } from "../registry/registry.ts";

/** A directory that is gone after the test. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), "spry-image-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A registry on a free port of this machine, for one test. */
export async function startRegistry({
  credentials,
  ...options
}: Partial<RegistryOptions> & {
  credentials?: { username: string; password: string };
} = {}): Promise<{ registry: Registry; host: string; url: string; dir: string }> {
  const dir = options.dir ?? temporaryDirectory();
  const logins = credentials ? onlyLogin(credentials) : options.logins;
  const registry = createRegistry({ ...options, dir, logins });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await registry.close();
  });
  return {
    registry,
    host: `127.0.0.1:${server.port}`,
    url: `http://127.0.0.1:${server.port}`,
    dir,
  };
}
