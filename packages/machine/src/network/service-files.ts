import { chmodSync, copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { type callersOf } from "./callers.ts";
import { type ServiceView } from "./cluster-view.ts";

type CallersOf = ReturnType<typeof callersOf>;

/** What a process finds under the name, or the address, of a Service. Read by the hooks. */
interface ServiceFile {
  /** The Service's own address, or those of the Pods behind a headless one. */
  addresses: string[];
  /** `80/TCP` → `address:port` of each endpoint; nothing for a headless Service. */
  ports?: Record<string, string[]>;
  /** Host name → address, of the Pods behind a headless Service that have one. */
  hosts?: Record<string, string[]>;
  externalName?: string;
  /** `address:port` of an endpoint → the addresses of Pods that alone may call it, and of those that may not. */
  admitted?: Record<string, string[]>;
  refused?: Record<string, string[]>;
}

const hooks = path.join(import.meta.dirname, "hooks");
/** A module for a virtual environment, loaded at every start. */
export const pythonHook = path.join(hooks, "spry_services.py");

/**
 * Names for processes that share the machine's network, where no name server of ours can be put and
 * no low port be taken without privileges: a file per Service under `<dataDir>/services/`, which a
 * hook in the interpreter looks into before the system's resolver does (docs/adr/0006). Files go on
 * answering while the platform is away.
 *
 *     names/<namespace>/<service>.json
 *     addresses/<cluster IP>.json
 *     service-names.cjs        the hook of Node.js; that of Python is in its virtual environment
 */
export class ServiceFiles {
  readonly #dir: string;
  /** What is in which file; "" where that is not known. */
  #written: Map<string, string> | undefined;

  /** With all views and the hook of Node.js; every user may read it. */
  get dir(): string {
    return this.#dir;
  }

  constructor(dataDir: string) {
    this.#dir = path.join(dataDir, "services");
  }

  /** Value of `NODE_OPTIONS` that loads the hook before everything else. */
  nodeOptions(given = ""): string {
    const hook = `--require ${JSON.stringify(path.join(this.#dir, "service-names.cjs"))}`;
    return given === "" ? hook : `${hook} ${given}`;
  }

  /** Where a Pod of a namespace looks first: value of `SPRY_SERVICES`. */
  viewOf(namespace: string): string {
    return path.join(this.#dir, "names", namespace);
  }

  /** Puts the hook of Node.js there; to be called before the first process is started. */
  prepare(): void {
    mkdirSync(this.#dir, { recursive: true });
    chmodSync(this.#dir, 0o755);
    const hook = path.join(this.#dir, "service-names.cjs");
    // Processes of an earlier platform may be loading the old one.
    copyFileSync(path.join(hooks, "service-names.cjs"), `${hook}.new`);
    renameSync(`${hook}.new`, hook);
  }

  /** `callers` says who may call which endpoint; everyone by default. */
  async apply(services: readonly ServiceView[], callers: CallersOf = () => ({})): Promise<void> {
    const wanted = new Map<string, string>();
    for (const service of services) {
      const text = JSON.stringify({ ...fileOf(service), ...limitsOf(service, callers) });
      wanted.set(path.join("names", service.namespace, `${service.name}.json`), text);
      if (service.clusterIp) wanted.set(path.join("addresses", `${service.clusterIp}.json`), text);
    }
    const written = (this.#written ??= this.#leftBehind());
    // One by one: what fails on the way is still to be done.
    for (const [file, text] of wanted) {
      if (written.get(file) === text) continue;
      await this.#write(file, text);
      written.set(file, text);
    }
    for (const file of written.keys()) {
      if (wanted.has(file)) continue;
      await rm(path.join(this.#dir, file), { force: true });
      written.delete(file);
    }
  }

  /** Files of an earlier platform, whatever is in them. */
  #leftBehind(): Map<string, string> {
    const files = new Map<string, string>();
    for (const top of ["names", "addresses"]) {
      mkdirSync(path.join(this.#dir, top), { recursive: true });
      const below = readdirSync(path.join(this.#dir, top), { recursive: true, encoding: "utf8" });
      for (const name of below) {
        if (name.endsWith(".json")) files.set(path.join(top, name), "");
        else if (name.endsWith(".new")) rmSync(path.join(this.#dir, top, name), { force: true });
      }
    }
    return files;
  }

  /** Readers see the old content or the new one. */
  async #write(name: string, text: string): Promise<void> {
    const file = path.join(this.#dir, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  }
}

function limitsOf({ ports }: ServiceView, callers: CallersOf) {
  const admitted: [string, string[]][] = [];
  const refused: [string, string[]][] = [];
  for (const { protocol, endpoints } of ports) {
    for (const endpoint of endpoints) {
      const at = `${endpoint.ip}:${endpoint.port}`;
      const found = callers(endpoint, protocol);
      if (found.admitted) admitted.push([at, found.admitted]);
      if (found.refused) refused.push([at, found.refused]);
    }
  }
  return {
    ...(admitted.length > 0 ? { admitted: Object.fromEntries(admitted) } : {}),
    ...(refused.length > 0 ? { refused: Object.fromEntries(refused) } : {}),
  };
}

function fileOf({ clusterIp, externalName, ports, addresses }: ServiceView): ServiceFile {
  if (externalName !== undefined) return { addresses: [], externalName };
  if (clusterIp === undefined) {
    const named = addresses.filter((each) => each.hostname !== undefined);
    const hosts = Object.fromEntries(named.map(({ hostname = "", ip }) => [hostname, [ip]]));
    return { addresses: addresses.map(({ ip }) => ip), hosts };
  }
  const entries = ports.map(({ port, protocol, endpoints }) => {
    const targets = endpoints.map((endpoint) => `${endpoint.ip}:${endpoint.port}`);
    return [`${port}/${protocol}`, targets] as const;
  });
  return { addresses: [clusterIp], ports: Object.fromEntries(entries) };
}
