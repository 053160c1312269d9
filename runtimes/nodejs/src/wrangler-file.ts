/** What Cloudflare's `wrangler.toml` or `wrangler.json` promises a Worker that this platform does not give it. */
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

const names = ["wrangler.toml", "wrangler.jsonc", "wrangler.json"];
const maxBytes = 100_000;

interface Promised {
  /** `wrangler.toml`; undefined where there is none. */
  name?: string;
  bindings: string[];
  variables: string[];
}

/** Of the file in this directory. */
export function promisedIn(directory: string): Promised {
  for (const name of names) {
    const path = `${directory}/${name}`;
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found?.isFile() || found.size > maxBytes) continue;
    const text = readFileSync(path, "utf8").replaceAll(/^\s*(?:#|\/\/).*$/gm, "");
    return { name, bindings: bindingsOf(text), variables: variablesOf(text) };
  }
  return { bindings: [], variables: [] };
}

/** Of the one next to the code, or one or two directories above it. */
export function promisedFor(file: string): Promised {
  const own = dirname(file);
  const places = [own, dirname(own), dirname(dirname(own))].map(promisedIn);
  return places.find(({ name }) => name !== undefined) ?? { bindings: [], variables: [] };
}

function bindingsOf(text: string): string[] {
  const all = text.matchAll(/(?:^|[{,\s])"?binding"?\s*[=:]\s*["'](\w+)["']/gm);
  const objects = text.matchAll(
    /(?:durable_objects[^]*?bindings[^\n]*\n?[^\]]*?)"?\bname"?\s*[=:]\s*["'](\w+)["']/g,
  );
  return [...new Set([...all, ...objects].map(([, name = ""]) => name))];
}

function variablesOf(text: string): string[] {
  const [, table] = /^\s*\[vars\]\s*$([^]*?)(?=^\s*\[|(?![^]))/m.exec(text) ?? [];
  const [, inline] = /"?\bvars"?\s*[=:]\s*\{([^}]*)\}/.exec(text) ?? [];
  const all = (table ?? inline ?? "").matchAll(/(?:^|[{,])\s*"?(\w+)"?\s*[=:]/gm);
  return [...all].map(([, name = ""]) => name);
}

/** One sentence about variables without a value; undefined where all have one. */
export function variablesRemark(
  { name, variables }: Promised,
  isSet: (variable: string) => boolean,
): string | undefined {
  const missing = variables.filter((each) => !isSet(each));
  return missing.length > 0
    ? `the variables ${missing.join(", ")} of ${name} are not set here: write them below env of spry.yaml`
    : undefined;
}
