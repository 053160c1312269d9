/** The platform's own registry: its key, its place on disk, and that it does not fill up. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import path from "node:path";
import {
  type ControllerConfig,
  imagesInUse,
  imageUses,
  startRegistryCleaning,
} from "@spry/controller";
import { type RegistryUsage } from "@spry/function";
import { createLogins, createRegistry, type Logins } from "@spry/image";
import { type KubeClient, type Logger } from "@spry/kube";
import { boundRegistry } from "../registry-connections.ts";
import { tenantsOf } from "../registry-tenants.ts";
import { type DataDir, readJson, writeAtomically } from "./data-dir.ts";

export interface EmbeddedRegistry {
  /** Makes logins: the platform's own, and those of nodes, namespaces and builds. */
  readonly logins: Logins;
  listen(o: { host: string; port: number }): Promise<{ port: number; close(): Promise<void> }>;
  /** Begins to remove what the cluster no longer needs; resolves when the signal is aborted. */
  keepClean(o: { config: ControllerConfig; signal: AbortSignal }): Promise<void>;
  /** How much it stores, and why; undefined while nothing keeps it clean, which knows what is in use. */
  usage(): Promise<RegistryUsage | undefined>;
  close(): Promise<void>;
}

/** Of `registry.json`: the platform's own login is there for people, who may do everything with it. */
interface RegistryFile {
  username: string;
  password: string;
  /** What all logins are signed with. */
  key: string;
}

export async function openRegistry(
  dataDir: DataDir,
  options: {
    /** With the registry's own rights. */
    client: KubeClient;
    /** Asked what uses the images of an earlier version: that version's data do not know of those rights. */
    administrator: KubeClient;
    quotaBytes: number;
    log: Logger;
  },
): Promise<EmbeddedRegistry> {
  const { client, administrator, quotaBytes, log } = options;
  const logins = createLogins(ensureKey(dataDir));
  let requestCleaning = () => {};
  let current: ControllerConfig | undefined;
  const registry = createRegistry({
    dir: dataDir.registry,
    logins,
    tenants: tenantsOf(client),
    quotaBytes,
    onPressure: () => requestCleaning(),
    log,
  });
  const repositories = await registry.moveOver(() => imageUses(administrator));
  if (repositories > 0)
    log.info({ repositories }, "moved images to repositories named after their namespaces");
  return {
    logins,
    listen: (o) => registry.listen({ ...o, bound: boundRegistry }),
    keepClean(o) {
      current = o.config;
      const clean = registry.clean.bind(registry);
      const cleaning = startRegistryCleaning({ ...o, client, clean, log });
      requestCleaning = () => cleaning.request();
      return cleaning.ended;
    },
    usage: async () => current && registry.usage(await imagesInUse(client, current)),
    close: () => registry.close(),
  };
}

/** Made once and kept with the data. Earlier versions had one password for all, which is good for nothing any more. */
function ensureKey(dataDir: DataDir): string {
  const file = path.join(dataDir.root, "registry.json");
  const known: unknown = readJson<Partial<RegistryFile>>(file)?.key;
  if (typeof known === "string" && /^[0-9a-f]{64}$/.test(known)) return known;
  const key = randomBytes(32).toString("hex");
  const made: RegistryFile = { ...createLogins(key).platform(), key };
  writeAtomically(file, JSON.stringify(made), 0o600);
  rmSync(path.join(dataDir.registry, "htpasswd"), { force: true });
  return key;
}
