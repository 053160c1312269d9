/** The platform's own registry: its user, its place on disk, and that it does not fill up. */
import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { type ControllerConfig, startRegistryCleaning } from "@spry/controller";
import { createRegistry, writeHtpasswd } from "@spry/image";
import { type KubeClient, type Logger } from "@spry/kube";
import { type DataDir, readJson, writeAtomically } from "./data-dir.ts";

export interface RegistryUser {
  username: string;
  password: string;
}

export interface EmbeddedRegistry {
  /** Its only user. */
  readonly user: RegistryUser;
  listen(o: { host: string; port: number }): Promise<{ port: number; close(): Promise<void> }>;
  /** Begins to remove what the cluster no longer needs; resolves when the signal is aborted. */
  keepClean(o: {
    client: KubeClient;
    config: ControllerConfig;
    signal: AbortSignal;
  }): Promise<void>;
  close(): Promise<void>;
}

export async function openRegistry(
  dataDir: DataDir,
  { quotaBytes, log }: { quotaBytes: number; log: Logger },
): Promise<EmbeddedRegistry> {
  const htpasswd = path.join(dataDir.registry, "htpasswd");
  const user = await ensureUser(path.join(dataDir.root, "registry.json"), htpasswd);
  let requestCleaning = () => {};
  const registry = createRegistry({
    dir: dataDir.registry,
    htpasswd,
    quotaBytes,
    onPressure: () => requestCleaning(),
    log,
  });
  return {
    user,
    listen: (o) => registry.listen(o),
    keepClean(o) {
      const clean = registry.clean.bind(registry);
      const cleaning = startRegistryCleaning({ ...o, clean, log });
      requestCleaning = () => cleaning.request();
      return cleaning.ended;
    },
    close: () => registry.close(),
  };
}

/** Made once and kept with the data: the password for the platform, and its hash for the registry. */
async function ensureUser(file: string, htpasswd: string): Promise<RegistryUser> {
  const known = readJson<RegistryUser>(file);
  if (known) {
    if (!existsSync(htpasswd)) await writeHtpasswd(htpasswd, known);
    return known;
  }
  const made = {
    username: randomBytes(10).toString("hex"),
    password: randomBytes(20).toString("hex"),
  };
  // In this order: whatever happens in between, the hash fits the password that is kept.
  rmSync(htpasswd, { force: true });
  writeAtomically(file, JSON.stringify(made), 0o600);
  await writeHtpasswd(htpasswd, made);
  return made;
}
