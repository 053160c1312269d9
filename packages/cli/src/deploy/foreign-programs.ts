/** Programs for other platforms, which would not start or answer nothing: known by their text before anything is sent. */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import {
  bindingsIn,
  bindingsRemark,
  foreignCode,
  promisedIn,
  variablesRemark,
} from "@spry/runtime-nodejs";
import { type Project } from "../project/project.ts";
import { UserError } from "../user-error.ts";

const maxBytes = 1_000_000;
/** The handler of the contract's own form is called, whatever else is there. */
const exportsMain =
  /\bexports\.main\s*=|\bexport\s+(?:async\s+)?(?:function\*?|const|let|var)\s+main\b|\bmodule\.exports\s*=\s*\{[^}]*\bmain\b/;

/** Throws a UserError that names the platform and what to write instead; returns a sentence about each thing that is missing at run time. */
export function refuseForeign({ root, handler, runtime, config }: Project): string[] {
  if (runtime.language !== "nodejs") return [];
  const file = path.join(root, handler);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxBytes) return [];
  const code = readFileSync(file, "utf8");
  if (exportsMain.test(code)) return [];
  const foreign = foreignCode(code);
  if (foreign !== undefined)
    throw new UserError(
      `${handler}: ${foreign}`,
      "nothing was deployed; what ran before still runs",
    );
  const promised = promisedIn(root);
  const bindings = [...new Set([...bindingsIn(code), ...promised.bindings])];
  const variables = variablesRemark(promised, (name) => Object.hasOwn(config.env ?? {}, name));
  return [
    ...(bindings.length > 0 ? [`${handler}: ${bindingsRemark(bindings)}`] : []),
    ...(variables === undefined ? [] : [`${handler}: ${variables}`]),
  ];
}
