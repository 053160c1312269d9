/** `spry dev` while tools and editors change its directory: it never ends, and serves what a new one would. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findPython } from "@spry/machine";
import { hasEnded, patience, rounds } from "@spry/test-kit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pause } from "../support/platform.ts";
import { type DevProcess, startSpryDev } from "../support/spry-dev.ts";

const python = (await findPython("3.12"))
  ? "python312"
  : (await findPython("3.14"))
    ? "python314"
    : undefined;
let home = "";
let dev: DevProcess | undefined;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "spry-dev-files-"));
});
afterEach(async () => {
  await dev?.end();
  dev = undefined;
  rmSync(home, { recursive: true, force: true });
});

const place = (file: string) => path.join(home, "fn", file);

function write(file: string, text: string): void {
  mkdirSync(path.dirname(place(file)), { recursive: true });
  writeFileSync(place(file), text);
}

async function start(): Promise<DevProcess> {
  const env = {
    XDG_CACHE_HOME: path.join(tmpdir(), "spry-dev-files-cache"),
    KUBECONFIG: "/nonexistent",
  };
  dev = await startSpryDev([place("")], env);
  return dev;
}

const ask = async ({ url }: DevProcess) => (await fetch(url)).text();
const serves = (running: DevProcess, body: string) => expect.poll(() => ask(running)).toBe(body);

/** What is exported where it exists. */
const optional = (file: string) =>
  `(() => { try { return require("./${file}"); } catch { return "-"; } })()`;
const exporting = (text: string) => `module.exports = ${JSON.stringify(text)};\n`;

test("what the code has loaded is watched, ignored or not, in new folders and in swapped ones", async () => {
  write(".gitignore", "dist/\n");
  write(
    "dist/index.js",
    `exports.main = () => ${optional("lib/a.js")} + ${optional("../src/new/deep/b.js")};\n`,
  );
  write("dist/lib/a.js", exporting("one"));
  write("package.json", `{ "main": "dist/index.js", "scripts": { "build": "tsc" } }\n`);
  const running = await start();
  await serves(running, "one-");
  write("dist/lib/a.js", exporting("two"));
  await serves(running, "two-");
  // What a build does with its output.
  rmSync(place("dist/lib"), { recursive: true });
  write("dist/lib/a.js", exporting("three"));
  await serves(running, "three-");
  write("src/new/deep/b.js", exporting("new"));
  await serves(running, "threenew");
  write("src/new/deep/b.js", exporting("edited"));
  await serves(running, "threeedited");
  cpSync(place("src"), place("src.new"), { recursive: true });
  write("src.new/new/deep/b.js", exporting("swapped"));
  renameSync(place("src"), place("src.old"));
  renameSync(place("src.new"), place("src"));
  await serves(running, "threeswapped");
  write("src/new/deep/b.js", exporting("after"));
  await serves(running, "threeafter");
  renameSync(place(""), path.join(home, "old"));
  cpSync(path.join(home, "old"), place(""), { recursive: true });
  write("dist/lib/a.js", exporting("four"));
  await serves(running, "fourafter");
});

test("files of editors, tools and links that lead nowhere neither stop nor reload it", async () => {
  symlinkSync(
    "nobody@nowhere.1234:5678",
    (write("handler.js", "exports.main = () => process.pid;\n"), place(".#handler.js")),
  );
  symlinkSync("../elsewhere", place("bazel-out"));
  write("env/pyvenv.cfg", "");
  symlinkSync("/usr/bin/python3", place("env/python"));
  const running = await start();
  const before = await ask(running);
  const names = [
    ".handler.js.swp",
    "handler.js~",
    "#handler.js#",
    "4913",
    ".idea/workspace.xml",
    ".vscode/settings.json",
    ".coverage",
  ];
  const more = [
    ".pytest_cache/v",
    ".ruff_cache/x",
    ".mypy_cache/3.12/x",
    "npm-debug.log",
    "Thumbs.db",
    ".env.local.swp",
  ];
  for (const name of [...names, ...more]) write(name, "x");
  rmSync(place(".#handler.js"));
  write("seen.js", "");
  await expect.poll(() => ask(running)).not.toBe(before);
  const after = await ask(running);
  for (const name of names) write(name, "y");
  await pause(400);
  expect(await ask(running)).toBe(after);
});

test.each([
  [
    "one file",
    `require("fs").writeFileSync(__dirname + "/cache.json", String(process.hrtime.bigint()));`,
  ],
  [
    "new files",
    `require("fs").writeFileSync(__dirname + "/" + process.hrtime.bigint() + ".tmp", "");`,
  ],
  [
    "a file that it loads",
    `require("fs").writeFileSync(__dirname + "/made.js", "module.exports = 1;"); require("./made.js");`,
  ],
])(
  "code that writes %s when it is loaded is served, and still reloaded by a save",
  async (_what, statement) => {
    write("handler.js", `${statement}\nexports.main = () => "one " + process.pid;\n`);
    const running = await start();
    await expect.poll(() => ask(running)).toMatch(/^one/);
    await pause(1500);
    const settled = await ask(running);
    await pause(500);
    expect(await ask(running)).toBe(settled);
    write("handler.js", `${statement}\nexports.main = () => "two";\n`);
    await serves(running, "two");
  },
);

const writing: [what: string, file: string, code: string, runtime?: string][] = [
  [
    "on each request",
    "handler.mjs",
    `import fs, { createWriteStream } from "node:fs";
import { appendFile } from "node:fs/promises";
import { promisify } from "node:util";
export const main = async () => {
  await appendFile("log.txt", "a");
  fs.writeFileSync("up-" + Date.now() + ".png", "a");
  await promisify(fs.writeFile)("draft.json", String(Date.now()));
  fs.renameSync("draft.json", "state.json");
  fs.rmSync("lib", { recursive: true, force: true });
  createWriteStream("made.js").end("// " + Date.now());
  return "WORD " + process.pid;
};
`,
  ],
  [
    "by a timer",
    "handler.js",
    `setInterval(() => require("fs").writeFileSync(__dirname + "/ticks.txt", String(Date.now())), 50);
exports.main = () => "WORD " + process.pid;
`,
  ],
  ...(python === undefined
    ? []
    : ([
        [
          "on each request, and to a database,",
          "handler.py",
          `import os, sqlite3, threading, time
first = os.getpid()
def main(event, context):
    db = sqlite3.connect("state.db")
    db.execute("create table if not exists a (b)")
    db.execute("insert into a values (1)")
    db.commit()
    db.close()
    with open("log.txt", "a") as log:
        log.write("a")
    os.replace("log.txt", "log.1")
    open(f"up-{time.time()}.png", "wb").close()
    return f"WORD {first}"
`,
          python,
        ],
      ] as [string, string, string, string][])),
];
test.each(writing)(
  "code that writes files %s is not loaded again by them, and is by a save",
  async (_what, file, code, runtime = "nodejs24") => {
    write("spry.yaml", `runtime: ${runtime}\n`);
    write(file, code.replace("WORD", "one"));
    const running = await start();
    await expect.poll(() => ask(running)).toMatch(/^one/);
    const first = await ask(running);
    for (let round = 0; round < 8; round++) {
      await pause(100);
      expect(await ask(running)).toBe(first);
    }
    expect(running.output()).not.toContain("changed:");
    expect(running.output()).toMatch(/is written by the code: that does not load it again/);
    write(file, code.replace("WORD", "two"));
    await expect.poll(() => ask(running)).toMatch(/^two/);
  },
);

test.skipIf(!python)("what Python has loaded from elsewhere is watched", async () => {
  write("spry.yaml", `runtime: ${python}\n`);
  write(
    "handler.py",
    "import sys\nsys.path.append('../lib')\nimport part\ndef main(): return part.word\n",
  );
  const part = path.join(home, "lib/part.py");
  mkdirSync(path.dirname(part));
  writeFileSync(part, "word = 'one'\n");
  const running = await start();
  await serves(running, "one");
  writeFileSync(part, "word = 'other'\n");
  await serves(running, "other");
});

test("files that vanish while it looks at them do not end it", async () => {
  write("handler.ts", `export enum Color { Red = "red" }\nexport const main = () => Color.Red;\n`);
  const running = await start();
  await serves(running, "red");
  for (let round = 0; round < 20; round++) {
    for (let each = 0; each < 60; each++)
      write(`gen/${each % 7}/f${each}.ts`, `export const a = ${round};\n`);
    await pause(3);
    rmSync(place("gen"), { recursive: true });
  }
  write("handler.ts", `export enum Color { Red = "blue" }\nexport const main = () => Color.Red;\n`);
  await serves(running, "blue");
});

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const modules = ["lib/a.js", "lib/deep/b.js", "dist/c.js", "dist/more/d.js", "new/e.js"];
const handler = (text: string) =>
  `const all = [${modules.map(optional).join(", ")}];\n` +
  `const data = (() => { try { return require("fs").readFileSync(__dirname + "/data.txt", "utf8"); } catch { return "-"; } })();\n` +
  `exports.main = () => ${JSON.stringify(text)} + all.join() + data;\n`;

/** One of the things that people, editors, builds and Git do to a directory. */
function operate(random: () => number, count: number): string {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const file = pick([...modules, "data.txt", "handler.js"]);
  const text =
    file === "handler.js"
      ? handler(`v${count} `)
      : file === "data.txt"
        ? `d${count}`
        : exporting(`m${count}`);
  const folder = pick(["lib", "dist", "new", "lib/deep"]);
  const operations: Record<string, () => void> = {
    write: () => write(file, text),
    "atomic save": () => {
      write(`${file}.tmp`, text);
      renameSync(place(`${file}.tmp`), place(file));
    },
    "save with a backup": () => {
      if (existsSync(place(file))) renameSync(place(file), `${place(file)}~`);
      write(file, text);
    },
    delete: () => file !== "handler.js" && rmSync(place(file), { force: true }),
    "delete folder": () => rmSync(place(folder), { recursive: true, force: true }),
    "swap folder": () => {
      if (!existsSync(place(folder))) return;
      cpSync(place(folder), place("swap.new"), { recursive: true });
      for (const name of readdirSync(place("swap.new"), { recursive: true, encoding: "utf8" }))
        if (statSync(place(`swap.new/${name}`)).isFile())
          writeFileSync(place(`swap.new/${name}`), exporting(`s${count}`));
      renameSync(place(folder), place("swap.old"));
      renameSync(place("swap.new"), place(folder));
      rmSync(place("swap.old"), { recursive: true });
    },
    "checkout of all": () => modules.forEach((each) => write(each, exporting(`c${count}`))),
    "away and back": () => {
      if (!existsSync(place(folder))) return;
      renameSync(place(folder), place("away"));
      renameSync(place("away"), place(folder));
    },
    touch: () => existsSync(place(file)) && utimesSync(place(file), new Date(), new Date()),
    lock: () => {
      rmSync(place(".#handler.js"), { force: true });
      symlinkSync(`user@host.${count}`, place(".#handler.js"));
    },
    "swap file": () => write(".handler.js.swp", text),
  };
  const [name, run] = pick(Object.entries(operations));
  run();
  return `${name} ${file} ${folder}`;
}

test("after any sequence of file operations it serves what a new one serves", async () => {
  write(".gitignore", "dist/\n");
  write("handler.js", handler("v0 "));
  const running = await start();
  const fresh = () =>
    execFileSync(process.execPath, ["-p", `require(${JSON.stringify(place("handler.js"))}).main()`])
      .toString()
      .trim();
  // Where nothing else is measured, a busy machine is not a failure.
  const timeout = rounds({ quick: patience.condition, full: 2000 });
  let count = 0;
  for (let seed = 1; seed <= rounds({ quick: 15, full: 200 }); seed++) {
    const random = randomFrom(seed);
    const done: string[] = [];
    for (let left = 2 + Math.floor(random() * 12); left > 0; left--) {
      done.push(operate(random, ++count));
      if (random() < 0.5) await pause(Math.floor(random() * 40));
    }
    const expected = fresh();
    const message = `seed ${seed}: ${done.join(", ")}`;
    await expect.poll(() => ask(running), { message, interval: 20, timeout }).toBe(expected);
    expect(hasEnded(running.child)).toBe(false);
  }
});
