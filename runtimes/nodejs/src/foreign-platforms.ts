/**
 * Programs for platforms whose interface the runtime does not have. Their exports look like those of others, and would be called with what
 * they cannot use: they are refused by name, while the code loads.
 */
import { readFileSync, statSync } from "node:fs";
import { parameterNames } from "./dialects/parameter-names.ts";
import { LoadError } from "./load-error.ts";
import { type Exports } from "./load-module.ts";
import { logLine } from "./log.ts";
import { memberOf } from "./member-of.ts";

const fetchInstead =
  "write `export default { fetch(request) { return new Response(...) } }` instead (docs/handlers.md)";

interface Foreign {
  /** In the code, comments aside. */
  uses: RegExp;
  /** A declaration or import that makes it the program's own. */
  unless?: RegExp;
  what: string;
  instead: string;
  /** It is missed only when a request comes; the code has loaded without all others. */
  isForRequests?: boolean;
}

const foreign: Foreign[] = [
  { uses: /\bDeno\.serve\s*\(/, what: "Deno.serve is part of Deno", instead: fetchInstead },
  { uses: /\bBun\.serve\s*\(/, what: "Bun.serve is part of Bun", instead: fetchInstead },
  {
    uses: /(?:from\s*|import\s*\(?\s*|require\s*\(\s*)["']cloudflare:/,
    what: "modules `cloudflare:` are part of Cloudflare Workers",
    instead: fetchInstead,
  },
  {
    uses: /(?:^|[;\s])(?:self\.)?addEventListener\s*\(\s*["'`]fetch["'`]/m,
    what: "addEventListener('fetch') is how service workers of Cloudflare listen",
    instead: fetchInstead,
  },
  ...["HTMLRewriter", "WebSocketPair"].map((name) => ({
    uses: new RegExp(`\\bnew\\s+${name}\\b`),
    unless: new RegExp(
      `\\b(?:class|const|let|var|function|typeof)\\s+${name}\\b|import[^;]*\\b${name}\\b|\\{[^}]*\\b${name}\\b[^}]*\\}\\s*=`,
    ),
    isForRequests: true,
    what: `${name} is part of Cloudflare Workers`,
    instead:
      name === "WebSocketPair"
        ? "write `export function websocket(socket)` instead (docs/handlers.md)"
        : "use a package that parses HTML, such as htmlrewriter",
  })),
  {
    uses: /\bcaches\.(?:default|open|match|has|delete)\b/,
    unless: /\b(?:const|let|var|function|typeof)\s+caches\b|import[^;]*\bcaches\b/,
    isForRequests: true,
    what: "caches is part of Cloudflare Workers and Deno",
    instead: "keep what is cached in a variable of the module, or in a database",
  },
  {
    uses: /(?:from\s*|require\s*\(\s*)["']@azure\/functions["']/,
    what: "@azure/functions needs the host of Azure Functions",
    instead: fetchInstead,
  },
];

const maxBytes = 1_000_000;

/**
 * What the code of the file uses that this platform does not have; undefined where it is nothing that is known, or the code asks first
 * whether it exists. `isLoaded`: it has got a handler without it.
 */
export function foreignUse(path: string, isLoaded: boolean): string | undefined {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? maxBytes + 1) > maxBytes)
    return undefined;
  const source = readFileSync(path, "utf8").replaceAll(/\/\*[^]*?\*\/|(?<![:"'`])\/\/.*/g, "");
  const found = foreign
    .filter(({ isForRequests = false }) => isForRequests || !isLoaded)
    .find(({ uses, unless }) => uses.test(source) && !unless?.test(source));
  return found && `${found.what}, and does not exist here: ${found.instead}`;
}

/** Throws a LoadError that names the platform; `name` of the file. Reports handlers that are not called. */
export function refuseForeign(module: Exports, name: string, path: string): void {
  const used = foreignUse(path, true) ?? foreignExport(module);
  if (used !== undefined) throw new LoadError(`loading ${name}: ${used}`);
  const own = memberOf(module, "default");
  if (own === null || typeof own !== "object" || typeof memberOf(own, "fetch") !== "function")
    return;
  for (const each of ["scheduled", "queue", "email", "tail"])
    if (typeof memberOf(own, each) === "function")
      logLine(`${name}: ${each}() of Cloudflare Workers is not called${insteadOf[each] ?? ""}`);
}

const insteadOf: Record<string, string> = {
  scheduled: ": schedules of spry.yaml call fetch",
  queue: ": a Subscription calls fetch",
};

function foreignExport(module: Exports): string | undefined {
  const own = [memberOf(module, "default"), module].find((each) => typeof each === "function");
  const candidates = [
    own,
    memberOf(module, "handler"),
    memberOf(module, "run"),
    memberOf(module, "index"),
  ];
  const [first = "", second = ""] =
    candidates.map(parameterNames).find(([, each = ""]) => isRequest(each)) ?? [];
  if (/^[_$]*(?:context|ctx)$/i.test(first) && second !== "")
    return `a function (${first}, ${second}) is one of Azure Functions, which cannot be called here: ${fetchInstead}`;
  if (
    typeof own === "function" &&
    typeof memberOf((own.prototype ?? {}) as object, "fetch") === "function"
  )
    return "the default export is a class with fetch, as Cloudflare Workers have it, and not an object: export an instance of it, `export default new ...()`";
  const app = memberOf(module, "default") ?? module;
  const isH3 = ["use", "handler", "stack", "resolve"].every((each) => memberOf(app, each));
  return isH3
    ? "it exports an application of h3: export `toNodeListener(app)` of h3, or `toWebHandler(app)` as `fetch`"
    : undefined;
}

const isRequest = (name: string) => /^[_$]*req(?:uest)?$/i.test(name);
