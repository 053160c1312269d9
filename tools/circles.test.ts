/**
 * Files that import each other in a circle can only be understood together: in no room are there more than five of them. Imports of types
 * count, too.
 */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");
const maxFiles = 5;

const files = globSync(["packages/*/src/**/*.{ts,tsx}", "runtimes/*/src/**/*.ts"], {
  cwd: root,
}).filter((file) => !/\.test\.tsx?$/.test(file));

const known = new Set(files);
const graph = new Map(
  files.map((file) => {
    const text = readFileSync(path.join(root, file), "utf8");
    const imports =
      /^\s*(?:import|export)\s[^;"]*?\bfrom\s*"(\.[^"\n]+)"|\bimport\(\s*"(\.[^"\n]+)"/gm;
    const named = [...text.matchAll(imports)].map(([, from, called]) =>
      path.join(path.dirname(file), from ?? called ?? ""),
    );
    return [file, named.filter((each) => known.has(each))] as const;
  }),
);

/** Strongly connected components (Tarjan), largest first. */
function circles(): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const open = new Set<string>();
  const visit = (file: string): void => {
    order.set(file, order.size);
    low.set(file, order.get(file) ?? 0);
    stack.push(file);
    open.add(file);
    for (const next of graph.get(file) ?? []) {
      if (!order.has(next)) visit(next);
      if (open.has(next))
        low.set(file, Math.min(low.get(file) ?? 0, low.get(next) ?? 0, order.get(next) ?? 0));
    }
    if (low.get(file) !== order.get(file)) return;
    const circle: string[] = [];
    for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
      open.delete(each);
      circle.push(each);
      if (each === file) break;
    }
    found.push(circle.sort());
  };
  for (const file of files) if (!order.has(file)) visit(file);
  return found.sort((a, b) => b.length - a.length);
}

test(`no circle of imports has more than ${maxFiles} files`, () => {
  expect(circles().filter((circle) => circle.length > maxFiles)).toEqual([]);
});
