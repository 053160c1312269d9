/** What the documents for users quote is real: commands and options exist, messages are those of the sources, code can be parsed. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Command } from "commander";
import { transformSync } from "esbuild";
import { load } from "js-yaml";
import { expect, test } from "vitest";
import { createProgram } from "../packages/cli/src/command-line/program.ts";
import { blocksOf } from "../test/support/document-blocks.ts";

const root = path.resolve(import.meta.dirname, "..");
const documents = globSync(["docs/*.md", "README.md", "CHANGELOG.md"], { cwd: root }).sort();
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");

/** What a command line of `spry` gets wrong, if anything. */
function problemOf(words: readonly string[]): string | undefined {
  const program = createProgram();
  let command: Command = program;
  for (const word of words) {
    if (word.startsWith("-")) {
      const flag = word.replace(/=.*/, "");
      const known = [...program.options, ...command.options].some(
        ({ long, short }) => long === flag || short === flag,
      );
      if (!known && flag !== "--help" && flag !== "-h" && flag !== "--")
        return `spry ${command.name()} has no option ${flag}`;
      continue;
    }
    const inner = command.commands.find((each) => each.name() === word);
    if (inner) command = inner;
    else if (command === program && /^[a-z]+$/.test(word) && word !== "help")
      return `spry has no command ${word}`;
  }
  return undefined;
}

test("every command of Spry in a document exists, with its options", () => {
  const wrong = documents.flatMap((file) => {
    const text = read(file);
    const inBlocks = [...text.matchAll(/^(?:npx )?spry +([^\n|#]*)/gm)];
    const inline = [...text.matchAll(/`(?:npx )?spry ([^`]*)`/g)];
    return [...inBlocks, ...inline].flatMap(([, line = ""]) => {
      // Quoted arguments are the user's.
      const words = line
        .replaceAll(/"[^"]*"|'[^']*'/g, "x")
        .split(/\s+/)
        .filter(Boolean);
      const problem = problemOf(words);
      return problem === undefined ? [] : [`${file}: ${problem}`];
    });
  });
  expect(wrong).toEqual([]);
});

test("messages in the troubleshooting are those of the sources", () => {
  const sources = globSync("{packages,runtimes}/*/{src,spry_runtime}/**/*.{ts,py}", {
    cwd: root,
  })
    .filter((file) => !file.endsWith(".test.ts"))
    .map(read)
    .join("\n");
  // Of npm.
  const others = ["npm error code E404", "npm error code SELF_SIGNED_CERT_IN_CHAIN"];
  const headings = [...read("docs/troubleshooting.md").matchAll(/^### `(.+)`$/gm)];
  expect(headings.length).toBeGreaterThan(10);
  const unknown = headings
    .flatMap(([, message = ""]) => message.split("…"))
    .map((part) => part.replaceAll(/^[ :,)]+|[ :,(]+$/g, ""))
    .filter((part) => part.length > 4 && !others.includes(part) && !sources.includes(part));
  expect(unknown).toEqual([]);
});

const parsers: Record<string, (text: string) => unknown> = {
  json: JSON.parse,
  yaml: (text) => text.split(/^---$/m).map((document) => load(document)),
  js: (text) => transformSync(text, { loader: "js", format: "esm" }),
  ts: (text) => transformSync(text, { loader: "ts", format: "esm" }),
};

test("code in documents can be parsed", () => {
  const wrong = documents.flatMap((file) =>
    blocksOf(read(file)).flatMap(({ language, text, line }) => {
      // One block of the documents is a mistake on purpose.
      if (text.includes("never closed")) return [];
      try {
        parsers[language]?.(text);
        return [];
      } catch (error) {
        return [`${file}:${line}: ${(error as Error).message}`];
      }
    }),
  );
  expect(wrong).toEqual([]);
});
