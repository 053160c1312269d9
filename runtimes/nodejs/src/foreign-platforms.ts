/**
 * Programs for platforms whose interface the runtime does not have. Their exports look like those of others, and would be called with what
 * they cannot use: they are refused by name, while the code loads.
 */
import { readFileSync, statSync } from "node:fs";
import { bindingsIn, bindingsRemark, foreignCode } from "./foreign-code.ts";
import { parameterNames } from "./dialects/parameter-names.ts";
import { LoadError } from "./load-error.ts";
import { type Exports } from "./load-module.ts";
import { logLine } from "./log.ts";
import { promisedFor, variablesRemark } from "./wrangler-file.ts";
import { memberOf } from "./member-of.ts";

const fetchInstead =
  "write `export default { fetch(request) { return new Response(...) } }` instead (docs/handlers.md)";

const maxBytes = 1_000_000;

/** What the code of the file uses that this platform does not have. `isLoaded`: it has got a handler without it. */
export function foreignUse(path: string, isLoaded: boolean): string | undefined {
  return foreignCode(textOf(path), isLoaded);
}

function textOf(path: string): string {
  const { size = maxBytes + 1 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return size > maxBytes ? "" : readFileSync(path, "utf8");
}

/** Throws a LoadError that names the platform; `name` of the file. Reports handlers that are not called. */
export function refuseForeign(module: Exports, name: string, path: string): void {
  const used = foreignUse(path, true) ?? foreignExport(module);
  if (used !== undefined) throw new LoadError(`loading ${name}: ${used}`);
  const own = memberOf(module, "default");
  if (own === null || typeof own !== "object") return;
  const uncalled = ["scheduled", "queue", "email", "tail"].filter(
    (each) => typeof memberOf(own, each) === "function",
  );
  if (typeof memberOf(own, "fetch") !== "function") {
    const [first] = uncalled;
    if (first !== undefined && typeof memberOf(module, "handler") !== "function")
      throw new LoadError(
        `loading ${name}: its default export has ${first}() of Cloudflare Workers and no fetch, so that no request reaches it${insteadOf[first] ?? ""}`,
      );
    return;
  }
  for (const each of uncalled)
    logLine(`${name}: ${each}() of Cloudflare Workers is not called${insteadOf[each] ?? ""}`);
  const promised = promisedFor(path);
  const bindings = [...new Set([...bindingsIn(textOf(path)), ...promised.bindings])];
  if (bindings.length > 0) logLine(`${name}: ${bindingsRemark(bindings)}`);
  const remark = variablesRemark(promised, (each) => process.env[each] !== undefined);
  if (remark !== undefined) logLine(`${name}: ${remark}`);
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
