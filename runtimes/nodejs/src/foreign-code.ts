/**
 * What the text of a program shows of platforms whose interface the runtime does not have. `spry deploy` asks before it sends the code, the
 * runtime while it loads it.
 */

const fetchInstead =
  "write `export default { fetch(request) { return new Response(...) } }` instead (docs/handlers.md)";

interface Foreign {
  /** In the code, comments aside. */
  uses: RegExp;
  /** A declaration or import that makes it the program's own, or a question whether it exists. */
  unless?: RegExp;
  what: string;
  instead: string;
  /** It is missed only when a request comes; the code has loaded without all others. */
  isForRequests?: boolean;
}

/** The code asks first whether that name exists. */
function asksFor(name: string): RegExp {
  return new RegExp(
    `\\btypeof\\s+(?:globalThis\\.)?${name}\\b|\\bglobalThis\\??\\.${name}\\b|["']${name}["']\\s+in\\b|versions\\??\\.${name.toLowerCase()}\\b`,
  );
}

const foreign: Foreign[] = [
  ...["Deno", "Bun"].map((name) => ({
    uses: new RegExp(`\\b${name}\\.serve\\s*\\(`),
    unless: asksFor(name),
    what: `${name}.serve is part of ${name}`,
    instead: fetchInstead,
  })),
  {
    uses: /(?:from\s*|import\s*\(?\s*|require\s*\(\s*)["']cloudflare:/,
    what: "modules `cloudflare:` are part of Cloudflare Workers",
    instead: fetchInstead,
  },
  {
    uses: /(?:^|[;\s])(?:self\.)?addEventListener\s*\(\s*["'`](?:fetch|scheduled)["'`]/m,
    unless: asksFor("addEventListener"),
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

/** What only the exports show where the code is loaded. */
const shapes: Foreign[] = [
  {
    uses: /(?:\bmodule\.exports\s*=|\bexports\.(?:run|index|handler|default)\s*=|\bexport\s+default)\s*(?:async\s*)?(?:function\s*[\w$]*\s*)?\(\s*(?:context|ctx)\s*(?::[^,()]+)?,\s*req(?:uest)?\b/,
    what: "a function (context, req) is one of Azure Functions",
    instead: fetchInstead,
  },
  {
    uses: /\bexport\s+default\s+class\b[^{]*\{[^]*?^\s*(?:async\s+)?fetch\s*\(/m,
    what: "the default export is a class with fetch, as Cloudflare Workers have it,",
    instead: "export an instance of it, `export default new ...()`",
  },
];

const maxBytes = 1_000_000;

/**
 * What a program uses that this platform does not have; undefined where it is nothing that is known, or the code asks first
 * whether it exists. `isLoaded`: it has got a handler without it.
 */
export function foreignCode(code: string, isLoaded = false): string | undefined {
  const source = withoutComments(code);
  const found = [...foreign, ...(isLoaded ? [] : shapes)]
    .filter(({ isForRequests = false }) => isForRequests || !isLoaded)
    .find(({ uses, unless }) => uses.test(source) && !unless?.test(source));
  return found && `${found.what}, and does not exist here: ${found.instead}`;
}

/** The bindings of Cloudflare Workers that the code asks `env` for: KV, D1, R2, queues and services. */
export function bindingsIn(code: string): string[] {
  const used =
    /(?<!\bprocess\.)(?<!import\.meta\.)\benv\.([A-Z]\w*)\.(?:get|put|list|delete|prepare|batch|exec|fetch|send|sendBatch|idFromName|newUniqueId|run|writeDataPoint|getWithMetadata|head|limit)\s*\(/g;
  return [...new Set([...withoutComments(code).matchAll(used)].map(([, name = ""]) => name))];
}

/** One sentence about them. */
export function bindingsRemark(names: readonly string[]): string {
  return `${names.map((name) => `env.${name}`).join(", ")}: bindings of Cloudflare Workers do not exist here, env has variables only: use a client of the database or service`;
}

function withoutComments(code: string): string {
  if (code.length > maxBytes) return "";
  return code.replaceAll(/\/\*[^]*?\*\/|(?<![:"'`])\/\/.*/g, "");
}
