import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { programs, versions } from "./binaries.ts";

const text = readFileSync(path.join(import.meta.dirname, "go.mod"), "utf8");
const block = (name: string) =>
  (new RegExp(`^${name} \\(\\n([^)]*)\\)`, "m").exec(text)?.[1] ?? "").trim().split(/\n\s*/);

test("go.mod has exactly the programs as its tools", () => {
  const built = Object.values<string>(programs).filter((source) => !source.startsWith("./"));
  expect(block("tool").toSorted()).toEqual(built.toSorted());
});

test("the staging modules are all of the Kubernetes version", () => {
  const staging = versions().kubernetes.replace(/^v1\./, "v0.");
  expect(block("replace").filter((line) => !line.endsWith(` ${staging}`))).toEqual([]);
});
