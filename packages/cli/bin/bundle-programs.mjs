// Bundles the programs of Spry: one JavaScript file each. Node.js would run the TypeScript as it is, but keep its compiler
// in memory (25 MB a process) and look for 300 files at every start. Locations (`import.meta`) stay those of the sources.
import { spawnSync } from "node:child_process";
import http from "node:http";
import https from "node:https";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { environment, node24, root } from "./node.mjs";
import { helpFile } from "./programs.mjs";

const source = path.join(root, "packages", "cli", "src");
const entryPoints = {
  main: path.join(source, "main.ts"),
  gateway: path.join(source, "gateway-main.ts"),
  queue: path.join(root, "packages", "queue", "src", "sqlite", "worker.ts"),
  "issue-certificates": path.join(source, "platform", "issue-certificates.ts"),
  "issue-host-certificate": path.join(source, "platform", "issue-host-certificate.ts"),
};

/** Found by their place in node_modules, at run time. */
export const external = ["esbuild", "npm", "@peculiar/x509", "re2js", "reflect-metadata", "semver"];

/**
 * Writes the programs to `outdir`. `inPackage`: sources are found from where the programs are, as directories next to it; otherwise
 * they stay where they are now.
 */
export async function bundlePrograms(outdir, { inPackage = false } = {}) {
  const { build, stop } = await import("esbuild");
  try {
    await build({
      entryPoints,
      outdir,
      bundle: true,
      splitting: true,
      platform: "node",
      target: "node24",
      format: "esm",
      legalComments: "none",
      logLevel: "error",
      external,
      // An import of types alone would load what it names.
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: false } },
      define: { SPRY_PROGRAM_URL: "import.meta.url" },
      banner: {
        js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
      },
      plugins: [keepLocations(inPackage ? fromPackage : fromHere), plainHttp],
    });
  } finally {
    await stop();
  }
  // Without it Node.js reads each file to find out what it is.
  writeFileSync(path.join(outdir, "package.json"), `{ "type": "module" }\n`);
  const main = path.join(outdir, "main.js");
  const options = { env: environment(), encoding: "utf8" };
  const { stdout, stderr, status } = spawnSync(node24(), [main, "--help"], options);
  if (status !== 0) throw new Error(`${main} --help failed: ${stderr}`);
  writeFileSync(path.join(outdir, helpFile), stdout);
}

const fromHere = (file) => ({
  url: JSON.stringify(pathToFileURL(file).href),
  dirname: JSON.stringify(path.dirname(file)),
});
const fromPackage = (file) => {
  const relative = path.relative(root, file).split(path.sep).join("/");
  return {
    url: `new URL(${JSON.stringify(`../${relative}`)}, import.meta.url).href`,
    dirname: `require("node:path").resolve(import.meta.dirname, ${JSON.stringify(`../${path.posix.dirname(relative)}`)})`,
  };
};

/** `import.meta.url` and its relatives mean the source file, not the bundle. */
const keepLocations = (locationOf) => ({
  name: "keep-locations",
  setup(build) {
    build.onLoad({ filter: /\/(packages|runtimes)\/[^/]+\/src\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      if (!text.includes("import.meta.")) return undefined;
      const { url, dirname } = locationOf(file);
      const contents = text.replaceAll(/import\.meta\.(url|dirname)/g, (_, which) =>
        which === "url" ? url : dirname,
      );
      return { contents, loader: "ts" };
    });
  },
});

/**
 * `import` of `node:http` reads all of its exports, and three of them load all of `fetch`, which takes longer than the rest of a
 * program's start. Only what is a plain value is exported here: nothing of ours needs more.
 */
const plainHttp = {
  name: "plain-http",
  setup(build) {
    const modules = { "node:http": http, "node:https": https };
    build.onResolve({ filter: /^node:https?$/ }, ({ path: name, kind }) =>
      kind === "import-statement" ? { path: name, namespace: "plain-http" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "plain-http" }, ({ path: name }) => {
      const exported = Object.entries(Object.getOwnPropertyDescriptors(modules[name]))
        .filter(([, { value }]) => value !== undefined)
        .map(([key]) => key);
      const contents = `const found = process.getBuiltinModule(${JSON.stringify(name)});
export default found;
export const { ${exported.join(", ")} } = found;`;
      return { contents, loader: "js" };
    });
  },
};
