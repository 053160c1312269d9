/** Every command that prints a table prints it as JSON, too: found by the modules that the commands load. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "./program.ts";

const sources = path.resolve(import.meta.dirname, "..");
/** What makes the lines of a table; `reportResults` is that of `spry deploy`. */
const table = /\b(?:tableLines|fittingTable|historyTable|reportResults)\(/;

function commandsBelow(command: Command): Command[] {
  return command.commands.flatMap((each) =>
    each.commands.length > 0 ? commandsBelow(each) : [each],
  );
}

/** `commands/env.ts` and `listEnv`, as the definition of each command has them, by the command's words. */
function loadedBy(): Map<string, { file: string; name: string }> {
  const found = new Map<string, { file: string; name: string }>();
  for (const file of globSync("*.ts", { cwd: import.meta.dirname })) {
    const text = readFileSync(path.join(import.meta.dirname, file), "utf8");
    let parents: Record<string, string> = {};
    for (const part of text.split(/(?=^ {2}(?:const \w+ = )?program\b|^ {2}\w+$)/m)) {
      const [, variable, of] = /^ {2}(?:const (\w+) = )?(\w+)/.exec(part) ?? [];
      const names = [...part.matchAll(/\.command\("([^"\s]+)/g)].map(([, name = ""]) => name);
      const own = [of === undefined ? "" : (parents[of] ?? ""), ...names].filter(Boolean).join(" ");
      if (variable !== undefined) parents = { ...parents, [variable]: own };
      const [, module, name] =
        /import\("\.\.\/(commands\/[\w-]+\.ts)"\)\)\.(\w+)\(/.exec(part) ?? [];
      if (module !== undefined && name !== undefined) found.set(own, { file: module, name });
    }
  }
  return found;
}

/** By the function that the command calls; where none of them has a table in its own text, by the module. */
function printsTable({ file, name }: { file: string; name: string }): boolean {
  const text = readFileSync(path.join(sources, file), "utf8");
  const exported = text.split(/^(?=export )/m).slice(1);
  const own = exported.map((body) => body.slice(0, body.search(/^\}$/m)));
  if (!own.some((body) => table.test(body))) return table.test(text);
  const start = new RegExp(`^export (?:async function|function|const) ${name}\\b`);
  return own.some((body) => start.test(body) && table.test(body));
}

test("a command that prints a table has -o json", () => {
  const modules = loadedBy();
  const wordsOf = (command: Command): string =>
    [command.parent?.parent ? wordsOf(command.parent) : "", command.name()]
      .filter(Boolean)
      .join(" ");
  const commands = commandsBelow(createProgram());
  // What the walk has not found would not be looked at: these are made in loops, and print a line each.
  const unknown = commands.map(wordsOf).filter((words) => !modules.has(words));
  const known = ["dlq discard", "dlq redrive", "function create", "function init"];
  expect(unknown.sort()).toEqual(known);
  const printing = commands.filter((command) => {
    const loaded = modules.get(wordsOf(command));
    return loaded && printsTable(loaded);
  });
  expect(printing.map(wordsOf)).toEqual(
    expect.arrayContaining(["get", "history", "env list", "secrets list", "status", "dlq list"]),
  );
  const lacking = printing.filter(
    ({ options }) => !options.some(({ long }) => long === "--output" || long === "--json"),
  );
  expect(lacking.map(wordsOf)).toEqual([]);
  for (const words of ["status", "doctor", "traffic"]) {
    const command = commands.find((each) => wordsOf(each) === words);
    expect(command?.options.map(({ long }) => long)).toContain("--output");
  }
});
