/**
 * A cluster for Spry to be installed in, of which a test knows no more than its user would: a kubeconfig, and values with
 * images that the nodes can pull. The one that KUBECONFIG names, else one of our own.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { InstalledCluster, whyNoInstallation } from "./installed-cluster.ts";
import { startPackageMirror } from "./package-mirror.ts";
import { root, run } from "./platform.ts";

export interface AnyCluster {
  kubeconfig: string;
  /** Files for `spry install --values`. */
  values: string[];
  /** By the names of `npm run images`. */
  images: Record<string, string>;
  stop(): Promise<void>;
}

const kubeconfig = process.env["KUBECONFIG"];
/** `host[:port][/path]`, by the name that the nodes know it by; who may push is in docker's config.json. */
const registry = process.env["SPRY_TEST_REGISTRY"];
/** More values, a file: a storage class, a registry of packages, ... */
const moreValues = process.env["SPRY_TEST_VALUES"];

/** Why none can be here; undefined when one can. */
export function whyNoneAtAll(): string | undefined {
  if (!kubeconfig) return whyNoInstallation();
  if (registry) return undefined;
  return "KUBECONFIG is set, and SPRY_TEST_REGISTRY does not name a registry for the images";
}

export function startAnyCluster(): Promise<AnyCluster> {
  return kubeconfig ? namedCluster(kubeconfig) : ownCluster();
}

async function namedCluster(kubeconfig: string): Promise<AnyCluster> {
  const scratch = mkdtempSync(path.join(tmpdir(), "named-cluster-"));
  const values = path.join(scratch, "images.json");
  const program = path.join(root, "tools/images/main.ts");
  const only = "--only=controller,registry,gateway,builder,nodejs24";
  const made = await run(process.execPath, [
    program,
    `--to=${registry}`,
    `--values=${values}`,
    only,
    ...(process.env["SPRY_TEST_REGISTRY_PLAIN"] ? ["--plain"] : []),
  ]);
  if (made.code !== 0) throw new Error(`making images: ${made.stderr}`);
  return {
    kubeconfig,
    values: [values, ...(moreValues ? [moreValues] : [])],
    images: (JSON.parse(readFileSync(values, "utf8")) as AnyCluster).images,
    stop: async () => rmSync(scratch, { recursive: true }),
  };
}

async function ownCluster(): Promise<AnyCluster> {
  const cluster = new InstalledCluster();
  try {
    await cluster.start();
    const npm = await startPackageMirror(cluster.hostAddress);
    const packages = path.join(cluster.scratch, "packages.json");
    writeFileSync(packages, JSON.stringify({ buildEnvironment: { npm_config_registry: npm.url } }));
    return {
      kubeconfig: cluster.kubeconfig,
      values: [...cluster.values, packages],
      images: cluster.images,
      stop: () => (npm.close(), cluster.stop()),
    };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
