/**
 * Words that readers stumbled over (docs/contributing/glossary.md) do not come back: in the messages of the rooms
 * and in the documents that have been revised. The lists of what is revised grow.
 */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

/** What is refused, and what to write instead. */
const words: [pattern: RegExp, instead: string][] = [
  [/(?<!there )\b(?:is|are|was|were) no(?! longer| more)\b/i, "is not a …, is not valid"],
  [/\bthan (?:it|they) may\b/i, "exceeded its limit (…)"],
  [/\bended well\b/i, "succeeded"],
  [/\b(?:tells?|telling|told)\b/i, "reports, shows, specifies"],
  [/\bwish(?:es|ed)?\b/i, "desired"],
  [/\bsurroundings\b/i, "environment"],
  // Not the account, as in passwd(5).
  [/\b(?:some|no|any)body\b(?!:)|\bwhoever\b/i, "the user, the client, the caller"],
  [/\bbeside\b/i, "next to, alongside, in addition to"],
  [/\banew\b/i, "again"],
  [/\blikewise\b/i, "also"],
  [/\b(?:is|are) not there\b/i, "does not exist, is missing"],
];
/** In messages alone: a document may well say that there is no build step. */
const inMessages: typeof words = [[/\bthere (?:is|are) no\b/i, "… does not exist, … not found"]];

const revisedRooms = [
  "packages/{apiserver,cli,controller,dashboard,eventing,exposure,function}/src/**/*.{ts,tsx}",
  "packages/{gateway,image,kube,machine,serving,source}/src/**/*.ts",
  "runtimes/nodejs/src/**/*.ts",
  "runtimes/python/spry_runtime/**/*.py",
];
const revisedDocuments = [
  "{CONTRIBUTING,README}.md",
  "docs/*.md",
  "examples/*/README.md",
  "docs/adr/*.md",
  "docs/contributing/rooms/*.md",
  "docs/contributing/{embedded-api,real-apiserver}.md",
  "runtimes/*/README.md",
];

const filesOf = (patterns: string[]) =>
  globSync(patterns, { cwd: root })
    .filter((file) => !/\.test\.tsx?$|\/testing\//.test(file))
    .sort();

/** Each comment, docstring and string of a source; of the alternatives the one that begins first is the one. */
const tokens = {
  ts: /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g,
  py: /#[^\n]*|"""[^]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g,
};

/** The strings of a source, each with its line: what a user may get to read. */
function messagesIn(file: string): [line: number, text: string][] {
  const text = readFileSync(path.join(root, file), "utf8");
  const found = [...text.matchAll(file.endsWith(".py") ? tokens.py : tokens.ts)];
  return found
    .filter(([token]) => /^["'`](?!"")/.test(token))
    .map(({ 0: token, index }) => [text.slice(0, index).split("\n").length, token]);
}

/** Without code: its words are others'. */
function linesOf(file: string): [line: number, text: string][] {
  let isCode = false;
  return readFileSync(path.join(root, file), "utf8")
    .split("\n")
    .flatMap((text, index): [number, string][] => {
      if (text.startsWith("```")) isCode = !isCode;
      return isCode ? [] : [[index + 1, text.replaceAll(/`[^`]*`/g, "``")]];
    });
}

const stumblingBlocks = (
  files: string[],
  read: (file: string) => [line: number, text: string][],
  refused: typeof words,
) =>
  files.flatMap((file) =>
    read(file).flatMap(([line, text]) =>
      refused
        .filter(([pattern]) => pattern.test(text))
        .map(([pattern, instead]) => {
          const found = pattern.exec(text)?.[0] ?? "";
          return `${file}:${line}: "${found}": write "${instead}"`;
        }),
    ),
  );

describe("words that readers stumbled over are not", () => {
  test("in messages", () => {
    const files = filesOf(revisedRooms);
    expect(files.length).toBeGreaterThan(300);
    expect(stumblingBlocks(files, messagesIn, [...words, ...inMessages])).toEqual([]);
  });

  test("in documents", () => {
    const files = filesOf(revisedDocuments);
    expect(files.length).toBeGreaterThan(10);
    expect(stumblingBlocks(files, linesOf, words)).toEqual([]);
  });
});
