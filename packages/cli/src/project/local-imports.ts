/** What a handler imports from its directory, as far as the text of its files says. */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { type SourceEntry } from "./files.ts";

/** One file that another one names. */
interface LocalImport {
  /** The file with the statement, relative to the directory, and its line, counted from 1. */
  from: string;
  line: number;
  /** As it is written. */
  specifier: string;
  /** Relative to the directory; `../…` is outside. Undefined where no such file exists. */
  found: string | undefined;
  /** By `require`. */
  isRequire: boolean;
  /** With `with { type: "json" }`. */
  hasAttribute: boolean;
}

export interface LocalImports {
  imports: LocalImport[];
  /** The handler, and all that it reaches. */
  files: { path: string; text: string }[];
}

const code = /\.[cm]?[jt]sx?$/;
const typed = /\.[cm]?tsx?$/;
const maxFiles = 2000;
const maxBytes = 1_000_000;
const statement =
  /\b(from|import|require)(\s*\(?\s*)(["'])(\.{1,2}(?:\/[^"'\n]*)?)\3([^\n;]{0,40})/g;
const added = [".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx", ".json"];

/** From the handler on; code that is not on the way from there does not count. */
export function localImports(root: string, handler: string): LocalImports {
  const result: LocalImports = { imports: [], files: [] };
  const waiting = [path.posix.normalize(handler)];
  const seen = new Set(waiting);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = textOf(path.join(root, file));
    result.files.push({ path: file, text });
    for (const each of importsIn(root, file, text)) {
      result.imports.push(each);
      const { found } = each;
      if (found === undefined || seen.has(found) || !code.test(found)) continue;
      seen.add(found);
      if (!found.startsWith("../") && seen.size < maxFiles) waiting.push(found);
    }
  }
  return result;
}

function importsIn(root: string, from: string, text: string): LocalImport[] {
  return [...text.matchAll(statement)].flatMap((match) => {
    const [, word = "", , , specifier = "", rest = ""] = match;
    const before = text.slice(0, match.index);
    const lineText = before.slice(before.lastIndexOf("\n") + 1);
    if (/^\s*(?:\/\/|\*|\/\*)/.test(lineText)) return [];
    return {
      from,
      line: before.split("\n").length,
      specifier,
      found: resolved(root, path.posix.join(path.posix.dirname(from), specifier)),
      isRequire: word === "require",
      hasAttribute: /^\s*,?\s*\{?\s*(?:with|assert)\b/.test(rest),
    };
  });
}

/**
 * Those that lead out of the directory. The text may only say so in a comment or a string: what it says counts where the compiler finds
 * the same. Not to be called while another one compiles, as esbuild is ended.
 */
export async function importsFromOutside(root: string, handler: string): Promise<LocalImport[]> {
  const said = localImports(root, handler).imports.filter(({ found }) => found?.startsWith("../"));
  if (said.length === 0) return [];
  const meant = new Set<string>();
  const keyOf = (from: string, specifier: string) => JSON.stringify([from, specifier]);
  const { build, stop } = await import("esbuild");
  const work = build({
    entryPoints: [path.join(root, handler)],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: "node",
    packages: "external",
    logLevel: "silent",
    plugins: [
      {
        name: "outside",
        setup: (esbuild) =>
          esbuild.onResolve(
            { filter: /^\.{1,2}(?:\/|$)/ },
            ({ path: specifier, importer, resolveDir }) => {
              meant.add(keyOf(path.relative(root, importer).split(path.sep).join("/"), specifier));
              const isInside = path.resolve(resolveDir, specifier).startsWith(root + path.sep);
              return isInside ? undefined : { path: specifier, external: true };
            },
          ),
      },
    ],
  });
  // Of a file that it cannot read, too, which is said by others, it has found what is before.
  await work.catch(() => {});
  await stop();
  return said.filter(({ from, specifier }) => meant.has(keyOf(from, specifier)));
}

/** As compilers look for it. */
function resolved(root: string, place: string): string | undefined {
  const [, stem = "", kind = ""] = /^(.*)\.([cm]?js)x?$/.exec(place) ?? [];
  const instead = stem === "" ? [] : [`${stem}.${kind.replace("j", "t")}`, `${stem}.tsx`];
  const candidates = [
    place,
    ...instead,
    ...added.map((extension) => place + extension),
    ...added.map((extension) => `${place}/index${extension}`),
  ];
  return candidates.find((each) => isFile(path.join(root, each)));
}

/**
 * Whether Node.js cannot run files as they are that compilers take: a file of TypeScript without its extension, JSON without an
 * attribute, modules where package.json says commonjs, and `beyond` types in what plain JavaScript imports.
 */
export function needsBundling(
  { imports, files }: LocalImports,
  type: unknown,
  beyond: (file: string) => boolean,
): boolean {
  return (
    imports.some(({ specifier, found = "", isRequire, hasAttribute }) => {
      if (typed.test(found)) return !code.test(specifier) || beyond(found);
      return (
        found.endsWith(".json") && (!specifier.endsWith(".json") || !(isRequire || hasAttribute))
      );
    }) ||
    (type === "commonjs" && files.some((file) => isModule(file)))
  );
}

/** Has the syntax of modules, and not their extension. */
const isModule = ({ path: file, text }: { path: string; text: string }): boolean =>
  /\.[jt]sx?$/.test(file) && /^\s*(?:import\s*["'{*\w]|export\s+(?!=))/m.test(text);

/** Whether a saved file may have changed what `needsBundling` says. */
export const mayNeedBundling = ({ file }: Pick<SourceEntry, "file">): boolean =>
  code.test(file) &&
  /\.json["']|\b(?:from|import|require)\s*\(?\s*["']\.{1,2}\/(?![^"']*\.[cm]?[jt]sx?["'])/.test(
    textOf(file),
  );

function textOf(file: string): string {
  try {
    return statSync(file).size > maxBytes ? "" : readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const isFile = (file: string): boolean => {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
};
