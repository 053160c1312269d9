/**
 * `emitDecoratorMetadata`: which types a class's parameters and properties have, for frameworks that ask for them at run time. esbuild
 * knows no types, so that the directory's own TypeScript compiles the files with decorators before esbuild gets them.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { type PartialMessage, type Plugin } from "esbuild";
import { UserError } from "../user-error.ts";
import { compilerOption } from "./compiler-options.ts";

const limits = { timeMs: 120_000, outputBytes: 4_000_000 };
const decorator = /(?:^|[\s(])@[A-Za-z_$][\w$.]*/m;
/** The parser's; other mistakes are for an editor to show. */
const syntaxError = /^(.+)\((\d+),(\d+)\): error TS1\d\d\d: (.*)$/gm;

/** What compiles the files with decorators, and the mistake of the directory that has kept it from doing so. */
export interface DecoratorMetadata {
  plugin: Plugin;
  problem: () => UserError | undefined;
  close: () => void;
}

/** Undefined where `tsconfig.json` does not ask for it. */
export function decoratorMetadata(root: string, handler: string): DecoratorMetadata | undefined {
  const settings = path.join(root, "tsconfig.json");
  const isSet = (name: string) => compilerOption(settings, name) === true;
  if (!isSet("emitDecoratorMetadata") || !isSet("experimentalDecorators")) return undefined;
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-typescript-"));
  let problem: UserError | undefined;
  let compiling: Promise<PartialMessage[]> | undefined;
  const plugin: Plugin = {
    name: "decorator-metadata",
    setup(build) {
      build.onLoad({ filter: /\.[cm]?tsx?$/ }, async ({ path: file }) => {
        if (/[\\/]node_modules[\\/]/.test(file)) return undefined;
        if (!decorator.test(readFileSync(file, "utf8"))) return undefined;
        try {
          compiling ??= runTypeScript(root, path.join(root, handler), scratch);
          const place = path.relative(root, file);
          const errors = (await compiling).filter(({ location }) => location?.file === place);
          return errors.length > 0 ? { errors } : compiledFile(file, scratch);
        } catch (error) {
          if (!(error instanceof UserError)) throw error;
          problem = error;
          return { errors: [{ text: error.message }] };
        }
      });
    },
  };
  const close = () => rmSync(scratch, { recursive: true, force: true });
  return { plugin, problem: () => problem, close };
}

/** Compiles the handler and all that it imports into a directory; returns the syntax errors. */
async function runTypeScript(
  root: string,
  handler: string,
  scratch: string,
): Promise<PartialMessage[]> {
  const program = programIn(root);
  const config = path.join(scratch, "tsconfig.json");
  const compilerOptions = {
    ...ownOptions,
    rootDir: path.parse(root).root,
    outDir: outputIn(scratch),
  };
  const settings = {
    extends: path.join(root, "tsconfig.json"),
    compilerOptions,
    files: [handler],
    include: [],
  };
  writeFileSync(config, JSON.stringify(settings));
  const output = await new Promise<string>((resolve, reject) => {
    const options = { cwd: root, timeout: limits.timeMs, maxBuffer: limits.outputBytes };
    const args = [program, "-p", config, "--pretty", "false"];
    // It says whether types fit, which does not keep it from writing files.
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      if (error?.killed)
        reject(new UserError("tsc has been ended: it took too long, or printed too much"));
      else resolve(`${stdout}${stderr}`);
    });
  });
  writeFileSync(path.join(scratch, "output"), output);
  return [...output.matchAll(syntaxError)].map(([, file = "", line, column, text = ""]) => ({
    text,
    location: locationOf(root, path.resolve(root, file), Number(line), Number(column)),
  }));
}

/** What the directory's own options may not change: one JavaScript file for each file, with all that esbuild does better left to it. */
const ownOptions = {
  noCheck: true,
  noEmit: false,
  noEmitOnError: false,
  emitDeclarationOnly: false,
  declaration: false,
  declarationMap: false,
  composite: false,
  incremental: false,
  isolatedDeclarations: false,
  sourceMap: false,
  inlineSourceMap: true,
  importHelpers: false,
  noEmitHelpers: false,
  allowJs: true,
  checkJs: false,
  allowImportingTsExtensions: false,
  rewriteRelativeImportExtensions: false,
  module: "preserve",
  moduleResolution: "bundler",
  moduleDetection: "auto",
  jsx: "preserve",
  // Reading what a runtime has takes most of the time, and says nothing about which types there are at run time.
  noLib: true,
  lib: null,
  types: [],
};

/** The compiler that is installed for the directory. */
function programIn(root: string): string {
  const install = "install it with `npm install --save-dev typescript`";
  try {
    const manifest = createRequire(path.join(root, "package.json")).resolve(
      "typescript/package.json",
    );
    const { bin } = JSON.parse(readFileSync(manifest, "utf8")) as { bin: { tsc: string } };
    return path.join(path.dirname(manifest), bin.tsc);
  } catch {
    throw new UserError(
      "tsconfig.json sets emitDecoratorMetadata, which needs the typescript package in the directory",
      install,
    );
  }
}

const outputIn = (scratch: string) => path.join(scratch, "compiled");

function compiledFile(file: string, scratch: string) {
  const place = path.join(outputIn(scratch), path.relative(path.parse(file).root, file));
  const output = place.replace(
    /\.([cm]?)ts(x?)$/,
    (_, kind: string, x: string) => `.${kind}js${x}`,
  );
  let text: string;
  try {
    text = readFileSync(output, "utf8");
  } catch {
    const [said = ""] = readFileSync(path.join(scratch, "output"), "utf8").split("\n");
    throw new UserError(
      `tsc has not compiled ${path.basename(file)}${said && `: ${said}`}`,
      "emitDecoratorMetadata needs TypeScript 5.6 or newer, and a tsconfig.json that it accepts",
    );
  }
  const loader: "js" | "jsx" = output.endsWith("x") ? "jsx" : "js";
  return { contents: withSourceOf(file, text), loader, resolveDir: path.dirname(file) };
}

/** Its map names the file from where the output is; esbuild looks for it from where the file is. */
function withSourceOf(file: string, text: string): string {
  return text.replace(/(?<=\n\/\/# sourceMappingURL=data:[^,]*,)\S+/, (encoded) => {
    const map = JSON.parse(Buffer.from(encoded, "base64").toString()) as object;
    const own = { ...map, sourceRoot: "", sources: [path.basename(file)] };
    return Buffer.from(JSON.stringify(own)).toString("base64");
  });
}

function locationOf(root: string, file: string, line: number, column: number) {
  const lineText = readFileSync(file, "utf8").split("\n")[line - 1] ?? "";
  return { file: path.relative(root, file), line, column: column - 1, lineText };
}
