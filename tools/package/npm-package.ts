/**
 * The npm package: the same directories as a checkout, with the programs bundled (`dist`), and without tests. What is bundled is not
 * a dependency of it; what is found at run time is, in the checkout's versions.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { bundleWeb } from "@spry/dashboard";
import { builderEntry } from "@spry/image";
import { sourceFetcherEntry } from "@spry/source";
import { npmCli } from "../../packages/cli/src/platform/npm-cli.ts";
import { Bundle } from "../../packages/cli/src/platform/bundle.ts";
import { trackedFiles } from "./tracked-files.ts";

const root = path.resolve(import.meta.dirname, "../..");
const bundler = path.join(root, "packages/cli/bin/bundle-programs.mjs");

/** Sources that are read at run time: data, hooks, and what images are made from, named by the digest of their sources. */
const contents = [
  "LICENSE",
  "packages/cli/bin/node.mjs",
  "packages/cli/bin/programs.mjs",
  "packages/cli/bin/spry.mjs",
  "packages/cli/package.json",
  "packages/apiserver/src/generated",
  "packages/machine/src/network/hooks",
  "packages/image/src",
  "packages/source/src",
  "runtimes/nodejs/package.json",
  "runtimes/nodejs/src",
  "runtimes/python/spry_runtime",
  "examples/hello",
];
const isLeftOut = (file: string): boolean =>
  /\.test\.ts$|\/testing(?:\/|$)|\/__pycache__(?:\/|$)/.test(file);

interface Manifest {
  version: string;
  license: string;
  description: string;
  engines: Record<string, string>;
  config: { package: string };
  dependencies?: Record<string, string>;
}
const manifestOf = (directory: string): Manifest =>
  JSON.parse(readFileSync(path.join(root, directory, "package.json"), "utf8")) as Manifest;

/** Writes the package's files to an empty directory. */
export async function stage(staging: string): Promise<void> {
  for (const name of trackedFiles(root, contents))
    if (!isLeftOut(name)) cpSync(path.join(root, name), path.join(staging, name));
  const { bundlePrograms, external } = (await import(bundler)) as {
    bundlePrograms: (outdir: string, options: { inPackage: boolean }) => Promise<void>;
    external: string[];
  };
  const dist = path.join(staging, "dist");
  mkdirSync(dist);
  await writeFileOfImages(dist);
  await bundleWeb(path.join(dist, "web"));
  writeFileSync(path.join(staging, "README.md"), readme());
  writeFileSync(
    path.join(staging, "package.json"),
    `${JSON.stringify(packageManifest(external), undefined, 2)}\n`,
  );
  await bundlePrograms(dist, { inPackage: true });
}

/** The programs of the platform's images whose sources need other rooms. */
async function writeFileOfImages(dist: string): Promise<void> {
  const builder = new Bundle(builderEntry, path.join(dist, "builder.cjs"));
  const sources = path.dirname(sourceFetcherEntry);
  const fetcher = new Bundle(sourceFetcherEntry, path.join(dist, "fetcher.cjs"), sources);
  for (const [name, bundle] of Object.entries({ builder, fetcher }))
    writeFileSync(path.join(dist, `${name}-${bundle.digest}.cjs`), await bundle.content());
}

function packageManifest(external: readonly string[]) {
  const { config, license, description, engines } = manifestOf(".");
  const { version, dependencies: own = {} } = manifestOf("packages/cli");
  const all = { ...manifestOf("packages/apiserver").dependencies, ...own };
  const dependencies = Object.fromEntries(external.map((name) => [name, all[name]]));
  return {
    name: config.package,
    version,
    description,
    license,
    type: "module",
    bin: { spry: "packages/cli/bin/spry.mjs" },
    engines,
    dependencies,
  };
}

const readme = (): string => `# Spry

Functions on Kubernetes, or on one machine with no cluster.

    npm install -g ${manifestOf(".").config.package}
    spry up                 # the whole platform on this machine; Ctrl-C stops it
    spry init hello
    spry dev hello          # run it here, and the new code at each save
    spry deploy hello       # run it on the platform

Spry sends nothing about you or your Functions to anyone: it has no telemetry, and looks for no updates.
`;

/** Makes the tarball of a directory; returns its file. */
export function pack(staging: string, outdir: string): string {
  mkdirSync(outdir, { recursive: true });
  const args = [npmCli(), "pack", "--silent", "--json", "--pack-destination", outdir];
  const output = execFileSync(process.execPath, args, { cwd: staging, encoding: "utf8" });
  const found = JSON.parse(output) as { filename: string }[] | Record<string, { filename: string }>;
  const [made] = Object.values(found);
  if (!made) throw new Error("npm pack made no tarball");
  return path.join(outdir, path.basename(made.filename));
}
