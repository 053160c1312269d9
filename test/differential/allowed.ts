import { readFileSync } from "node:fs";
import { type Difference } from "./compare.ts";

export interface Allowance {
  /** Of a case's name and of a difference's path without the step; `*` stands for any text. */
  case: RegExp;
  path: RegExp;
  reason: string;
  /** Says its reason: both may answer equally in a run. */
  isChance: boolean;
}

const document = new URL("../../docs/contributing/embedded-api.md", import.meta.url);

/** The rows of a section of docs/contributing/embedded-api.md whose first two cells are code; the first section has no heading. */
export function allowances(section = ""): Allowance[] {
  const sections = readFileSync(document, "utf8").split(/^## /m);
  const text = section ? sections.find((each) => each.startsWith(`${section}\n`)) : sections[0];
  const rows = (text ?? "").matchAll(/^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$/gm);
  return [...rows].map(([, name = "", path = "", reason = ""]) => ({
    case: pattern(name),
    path: pattern(path),
    reason,
    isChance: /\bchance\b/.test(reason),
  }));
}

export function allowanceOf(
  list: Allowance[],
  name: string,
  { path }: Difference,
): Allowance | undefined {
  const field = path.replace(/^\d+\./, "");
  return list.find((each) => each.case.test(name) && each.path.test(field));
}

function pattern(text: string): RegExp {
  const escaped = text.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("*", ".*");
  return new RegExp(`^${escaped}$`);
}
