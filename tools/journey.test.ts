/**
 * `docs/ARCHITECTURE.md` against the files: each path of the journey exists, each arrow is an import, and the rooms
 * are those that there are.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");
const text = readFileSync(path.join(root, "docs/ARCHITECTURE.md"), "utf8");

/** Rows of the table that follows a heading, as trimmed cells. */
function tableBelow(heading: string): string[][] {
  const section = text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const sources = (room: string) =>
  ["nodejs", "python"].includes(room) ? `runtimes/${room}/src` : `packages/${room}/src`;

/** `stages/{build,deploy}.ts` as two paths; of several in one cell the later ones count from the arrow before them. */
function pathsIn(step: string): string[] {
  return [...step.matchAll(/`([^`]+)`/g)].flatMap(([, name = ""]) => {
    const [whole, before = "", list = "", after = ""] = /^(.*)\{([^}]+)\}(.*)$/.exec(name) ?? [];
    return whole === undefined ? [name] : list.split(",").map((each) => before + each + after);
  });
}

/** Files that a file imports with relative paths, types included. */
function importsOf(file: string): string[] {
  const statement =
    /\bfrom\s*"(\.[^"\n]+)"|\bimport\(\s*"(\.[^"\n]+)"|^\s*import\s*"(\.[^"\n]+)"/gm;
  const found = [...readFileSync(file, "utf8").matchAll(statement)];
  return found.map(([, a, b, c]) => path.join(path.dirname(file), a ?? b ?? c ?? ""));
}

/** Directly, or through one file in between. */
function isImported(from: string, to: string): boolean {
  const direct = importsOf(from);
  return (
    direct.includes(to) || direct.some((each) => existsSync(each) && importsOf(each).includes(to))
  );
}

const journey = tableBelow("The journey of a Function").map(
  ([, what = "", room = "", files = ""]) => ({
    what,
    room,
    chains: files.split(";").map((chain) => chain.split("→").map(pathsIn)),
  }),
);

test("the journey has its nineteen steps", () => {
  const numbers = tableBelow("The journey of a Function").flatMap(([number]) => number || []);
  expect(numbers).toEqual(Array.from({ length: 19 }, (_, index) => String(index + 1)));
});

describe.each(journey)("$room: $what", ({ room, chains }) => {
  const absolute = (file: string) => path.join(root, sources(room), file);

  test("its files exist", () => {
    const all = chains.flat(2);
    expect(all.length).toBeGreaterThan(0);
    expect(all.filter((file) => !existsSync(absolute(file)))).toEqual([]);
  });

  test("its arrows are imports", () => {
    const wrong = chains.flatMap((chain) =>
      chain.slice(1).flatMap((targets, index) => {
        const [from = "", ...more] = chain[index] ?? [];
        if (more.length > 0)
          return [`an arrow begins at several files: ${from}, ${more.join(", ")}`];
        return targets
          .filter((to) => !isImported(absolute(from), absolute(to)))
          .map((to) => `${from} does not import ${to}`);
      }),
    );
    expect(wrong).toEqual([]);
  });
});

describe("the table of rooms", () => {
  const rooms = tableBelow("Rooms").map(([name = "", , , allowed = ""]) => {
    const short = /\[([^\]]+)\]/.exec(name)?.[1] ?? name;
    return { folder: short.includes("/") ? short : `packages/${short}`, allowed };
  });

  test.each(rooms)("$folder may import $allowed", ({ folder, allowed }) => {
    const manifest = path.join(root, folder, "package.json");
    // Python has no workspace.
    if (!existsSync(manifest)) return expect(allowed).toBe("–");
    const { dependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as {
      dependencies?: Record<string, string>;
    };
    const ours = Object.keys(dependencies).flatMap((name) => /^@spry\/(.+)$/.exec(name)?.[1] ?? []);
    if (allowed === "all") return expect(ours.length).toBe(rooms.length - 2);
    expect(ours.sort()).toEqual(allowed === "–" ? [] : allowed.split(", ").sort());
  });

  test("has a page of notes for each", () => {
    const pages = [...text.matchAll(/\]: (contributing\/rooms\/[\w-]+\.md)$/gm)].map(
      ([, page = ""]) => page,
    );
    expect(new Set(pages).size).toBeGreaterThanOrEqual(rooms.length);
  });
});
