/** The files of the runtime in an image. The Function's own files are next to them, in `function/`. */
import { fileURLToPath } from "node:url";
import { type BuildOptions } from "esbuild";
import { providedFiles } from "../provided-files.ts";

/** `path` is relative to the directory of them all. */
export interface RuntimeFile {
  path: string;
  content: Buffer;
}

/** The file that `node` is started with. */
export const startFile = "server.cjs";

const source = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

/** For any Node.js since 22; `compileRuntime` adds what makes one of them start faster. Uses esbuild, which who calls stops. */
export async function bundleRuntime(): Promise<RuntimeFile[]> {
  const [start, runtime] = await Promise.all([
    bundle("start.ts"),
    // Of the form that Node.js gives to a CommonJS module: `start.ts` calls it.
    bundle("main.ts", {
      banner: {
        js: "(function (exports, require, module, __filename, __dirname, dynamicImport) {",
      },
      footer: { js: "})" },
      // Of modules of Node.js itself.
      supported: { "dynamic-import": false },
    }),
  ]);
  return [
    { path: startFile, content: start },
    { path: "runtime.js", content: runtime },
    ...providedFiles,
  ];
}

type Options = Pick<BuildOptions, "banner" | "footer" | "supported">;

async function bundle(name: string, options: Options = {}): Promise<Buffer> {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [source(name)],
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    legalComments: "none",
    logLevel: "silent",
    // What the text says of its origin is the same wherever it is made.
    absWorkingDir: source(""),
    write: false,
    ...options,
  });
  const [file] = outputFiles;
  if (!file) throw new Error(`bundling ${name}: the bundler produced no output`);
  return Buffer.from(file.contents);
}
