/** Our own programs as images carry them: one file each, with everything in it. */
import path from "node:path";
import { builderEntry } from "@spry/image";
import { sourceFetcherEntry } from "@spry/source";
import { build, stop } from "esbuild";

const root = path.resolve(import.meta.dirname, "../..");
const inCluster = (name: string) => path.join(root, "packages/cli/src/in-cluster", name);

const entries = {
  builder: builderEntry,
  fetcher: sourceFetcherEntry,
  controller: inCluster("controller-main.ts"),
  registry: inCluster("registry-main.ts"),
  gateway: inCluster("gateway-main.ts"),
  dashboard: inCluster("dashboard-main.ts"),
  eventing: inCluster("eventing-main.ts"),
};

export type ProgramName = keyof typeof entries;

/** CommonJS, which is what starts fastest. */
export function bundle(name: ProgramName): Promise<Uint8Array> {
  return bundleOf(entries[name]);
}

/** The same of any source file. */
export async function bundleOf(entry: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    write: false,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    legalComments: "none",
    logLevel: "error",
    // The name of a file in the image says nothing of where it was made.
    absWorkingDir: root,
    // Where the sources are is known only in a checkout; what asks for it is not called in an image.
    define: { "import.meta.url": '"file:///opt/spry/program.cjs"' },
  });
  const [file] = outputFiles;
  if (!file) throw new Error(`bundling ${entry}: nothing came out`);
  return file.contents;
}

export const endBundling = stop;
