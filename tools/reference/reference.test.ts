/** Generated pages are those of the code as it is, and say something about everything. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { functionCrd } from "@spry/function";
import { expect, test } from "vitest";
import { createProgram } from "../../packages/cli/src/command-line/program.ts";
import { generatedPages } from "./pages.ts";

const root = path.resolve(import.meta.dirname, "../..");

test.each(Object.entries(generatedPages()))("%s is current: npm run reference", (file, text) => {
  expect(readFileSync(path.join(root, file), "utf8")).toBe(text);
});

interface Field {
  description?: string;
  properties?: Record<string, Field>;
  items?: Field;
}
/** Fields of Kubernetes' own kinds, and those of every object. */
const others = /^(?:apiVersion|kind|metadata)$|\.(?:env|resources|\w+SecurityContext)\b./;

test("every field of a Function is described", () => {
  const silent: string[] = [];
  const visit = (field: Field, place: string) => {
    for (const [name, each] of Object.entries(field.properties ?? {})) {
      const inner = place ? `${place}.${name}` : name;
      if (others.test(inner)) continue;
      if (!each.description) silent.push(inner);
      visit(each.items ?? each, inner);
    }
  };
  visit(functionCrd().spec.versions[0]?.schema?.openAPIV3Schema as Field, "");
  expect(silent).toEqual([]);
});

test("every command and option is described, in lines that fit a terminal of 80 columns", () => {
  const program = createProgram();
  for (const command of [program, ...program.commands]) {
    expect(command.description(), command.name()).not.toBe("");
    for (const { flags, description } of command.options) expect(description, flags).not.toBe("");
    command.configureHelp({ helpWidth: 80 });
    const long = command
      .helpInformation()
      .split("\n")
      .filter((line) => line.length > 80);
    expect(long).toEqual([]);
  }
});
