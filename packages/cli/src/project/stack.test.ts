import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { UserError } from "../user-error.ts";
import { projectOf, targetsOf } from "./targets.ts";

let home = "";
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A directory with two Functions, each in its own, and another one outside. */
function directoryWith(text: string, files: Record<string, string> = {}): string {
  home = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-stack-")));
  const all = {
    "outside/handler.js": "",
    "shop/orders/handler.js": "",
    "shop/stock/handler.js": "",
    "shop/src/mail.ts": "",
    "shop/src/count.py": "",
    "shop/spry.yaml": text,
    ...Object.fromEntries(Object.entries(files).map(([name, each]) => [`shop/${name}`, each])),
  };
  for (const [name, content] of Object.entries(all)) {
    const place = path.join(home, name);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, content);
  }
  symlinkSync("../outside", path.join(home, "shop/link"));
  return path.join(home, "shop");
}

function opened(text: string, ...names: string[]) {
  const root = directoryWith(text);
  return targetsOf([root], names).map((target) => {
    const { name, root: at, handler, runtime, config } = projectOf(target);
    return { name, at: path.relative(root, at), handler, runtime: runtime.name, config };
  });
}

function refusalOf(work: () => unknown): UserError {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("functions of spry.yaml", () => {
  test("each has a directory and what all have, of which its own settings take precedence", () => {
    const found = opened(`
namespace: shop
env: { A: all, B: all }
scale: { max: 3 }
functions:
  orders:
    env: { B: own }
    scale: { min: 2 }
  other: { directory: stock, runtime: nodejs22 }
  stock:
`);
    expect(found.map(({ name, at, runtime }) => [name, at, runtime])).toEqual([
      ["orders", "orders", "nodejs24"],
      ["other", "stock", "nodejs22"],
      ["stock", "stock", "nodejs24"],
    ]);
    expect(found[0]?.config).toEqual({
      name: "orders",
      namespace: "shop",
      env: { A: "all", B: "own" },
      scale: { max: 3, min: 2 },
    });
  });

  test("several share a directory with different handlers, of different languages, too", () => {
    const found = opened(`functions:
  mail: { handler: src/mail.ts }
  count: { handler: ./src/count.py }
`);
    expect(
      found.map(({ at, handler, runtime, config }) => [at, handler, runtime, config.env]),
    ).toEqual([
      ["", "src/mail.ts", "nodejs24", { HANDLER_MOD_NAME: "src/mail" }],
      ["", "src/count.py", "python312", { HANDLER_MOD_NAME: "src.count" }],
    ]);
  });

  test("some are chosen by their names", () => {
    expect(opened("functions: { orders: , stock: }", "stock").map(({ name }) => name)).toEqual([
      "stock",
    ]);
    const unknown = refusalOf(() => opened("functions: { orders: , stock: }", "order"));
    expect(unknown.message).toContain("a Function order does not exist in");
    expect(unknown.wayOut).toBe("choose one of orders, stock");
  });

  test("the directory of one of them alone has the same settings", () => {
    const root = directoryWith("env: { A: all }\nfunctions: { orders: , stock: }\n");
    const [target, ...others] = targetsOf([path.join(root, "orders")]);
    expect(others).toEqual([]);
    expect(target && projectOf(target).config.env).toEqual({ A: "all" });
  });

  const refused: [string, string, string, string?][] = [
    ["none", "functions: {}\n", "spry.yaml:1: functions is empty", "remove the key"],
    ["a list", "functions: [orders]\n", "spry.yaml:1: functions must be an object"],
    ["a name", "name: shop\nfunctions: { orders: }\n", "spry.yaml:1: name is the name of one"],
    ["a capital letter", "functions:\n  Orders:\n", "spry.yaml:2: functions.Orders is not a valid"],
    [
      "a long name",
      `functions:\n  ${"a".repeat(64)}:\n`,
      "is not a valid name",
      "with a letter first; at most 63",
    ],
    [
      "a Function twice",
      "functions:\n  orders:\n  orders:\n",
      "spry.yaml:3:3: a key is there for the second time",
      "Functions have different names",
    ],
    [
      "an unknown key",
      "functions:\n  orders:\n    runtme: x\n",
      "spry.yaml:3: functions.orders.runtme is not a known key",
      "directory, runtime",
    ],
    [
      "a namespace of one",
      "functions:\n  orders:\n    namespace: x\n",
      "spry.yaml:3: functions.orders.namespace is not a known key",
    ],
    [
      "a wrong value",
      "scale: { max: 1 }\nfunctions:\n  orders:\n    scale: { min: -1 }\n",
      "spry.yaml:4: functions.orders.scale.min must be at least 0",
    ],
    [
      "a directory that does not exist",
      "functions:\n  orders:\n    directory: ordres\n",
      'spry.yaml:3: functions.orders.directory is "ordres", which is not a directory',
      "relative to spry.yaml",
    ],
    [
      "a directory outside",
      "functions:\n  a: { directory: ../outside }\n",
      'functions.a.directory is "../outside", which is outside of the directory',
    ],
    [
      "a link to one",
      "functions:\n  link:\n",
      'spry.yaml:2: functions.link is "link", which is outside of the directory',
    ],
    [
      "a handler that does not exist",
      "functions:\n  a:\n    handler: src/no.js\n",
      'spry.yaml:3: functions.a.handler is "src/no.js", and that file does not exist',
    ],
    [
      "a handler with its function",
      "functions:\n  a:\n    handler: src/mail.send\n",
      'spry.yaml:3: functions.a.handler is "src/mail.send", and that file',
      "write src/mail.ts, the file alone, and set HANDLER_FUNC_NAME: send below env; for a handler of AWS Lambda add `dialect: lambda` instead",
    ],
    [
      "a handler without its end",
      "functions:\n  a:\n    handler: src/mail\n",
      "functions.a.handler",
      "write src/mail.ts",
    ],
    [
      "a handler outside",
      "handler: ../outside/handler.js\nfunctions:\n  a:\n",
      'spry.yaml:1: handler is "../outside/handler.js", which is outside of the Function\'s directory',
    ],
    [
      "a handler of another language",
      "functions:\n  a:\n    handler: src/count.py\n    runtime: nodejs24\n",
      'functions.a.handler is "src/count.py", which the runtime nodejs24 cannot load',
    ],
  ];
  test.each(refused)("%s is refused", (_name, text, message, wayOut = "") => {
    const refusal = refusalOf(() => opened(text));
    expect(refusal.message).toContain(message);
    expect(refusal.wayOut ?? "").toContain(wayOut);
  });

  test("there is one place for settings", () => {
    const root = directoryWith("functions:\n  orders:\n", {
      "orders/spry.yaml": "env: { A: b }\n",
    });
    const refusal = refusalOf(() => targetsOf([root]));
    expect(refusal.message).toContain("spry.yaml:2: functions.orders has a second spry.yaml:");
    expect(refusal.wayOut).toBe("move its keys below functions.orders, and delete it");
  });

  test("two directories cannot be the same Function, and one that is not does not hide the other", () => {
    const root = directoryWith("", { "a/handler.js": "", "a/spry.yaml": "name: stock\n" });
    const [stock, a] = ["stock", "a"].map((name) => path.join(root, name));
    expect(refusalOf(() => targetsOf([stock!, a!])).message).toMatch(/are both Function stock$/);
    const [first, second] = targetsOf([path.join(root, "nowhere"), stock!]);
    expect(first?.found).toBeInstanceOf(UserError);
    expect(second?.found).toMatchObject({ name: "stock" });
  });
});

test("handler of one Function", () => {
  const root = directoryWith("handler: src/mail.ts\n");
  const [target] = targetsOf([root]);
  expect(target?.found).toMatchObject({
    name: "shop",
    handler: "src/mail.ts",
    config: { env: { HANDLER_MOD_NAME: "src/mail" } },
  });
});
