/** `spry init` and `spry dev`: the inner loop of a user who has neither a platform nor a container. */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findPython } from "@spry/machine";
import { endChild, freePort } from "@spry/test-kit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { cleanEnvironment, pause, root, run } from "../support/platform.ts";
import { type DevProcess, startSpryDev } from "../support/spry-dev.ts";

const spry = path.join(root, "packages/cli/bin/spry.mjs");
const python = (await findPython("3.12"))
  ? "3.12"
  : (await findPython("3.14"))
    ? "3.14"
    : undefined;
/** Of the machine, where it is one that cannot run the command itself. */
const olderNode = ["/usr/bin/node", "/usr/local/bin/node"].find((file) => {
  const { stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
  return /^v2[0-3]\./.test(stdout ?? "");
});
let home: string;
const running = new Set<DevProcess>();

beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), "spry-dev-test-"));
});
afterEach(async () => {
  for (const each of running) await each.end();
  running.clear();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const directory = (name: string) => path.join(home, name);
const command = (...args: string[]) => run(process.execPath, [spry, ...args]);

const startDev = (name: string, ...args: string[]) => startDevWith({}, name, ...args);

async function startDevWith(
  variables: NodeJS.ProcessEnv,
  name: string,
  ...args: string[]
): Promise<DevProcess> {
  const env = { XDG_CACHE_HOME: path.join(home, "cache"), KUBECONFIG: "/nonexistent" };
  const started = await startSpryDev([directory(name), ...args], { ...env, ...variables });
  running.add(started);
  return started;
}

const ask = async (url: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, { headers });
  return { status: response.status, body: await response.text() };
};

function edit(name: string, file: string, from: string, to: string): void {
  const place = path.join(directory(name), file);
  writeFileSync(place, readFileSync(place, "utf8").replace(from, to));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(10);
}

const isLike = (found: Record<string, unknown>, fields: object): boolean =>
  Object.entries(fields).every(([name, value]) => found[name] === value);

/** Of processes of this machine whose command line has the text. */
function processesWith(text: string): string[] {
  if (process.platform !== "linux") return [];
  const { readdirSync } = process.getBuiltinModule("node:fs");
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(text);
    } catch {
      return false;
    }
  });
}

test("code that is more than TypeScript's types is compiled at each save, and says where it fails", async () => {
  const write = (file: string, text: string) => {
    mkdirSync(directory("tsx"), { recursive: true });
    writeFileSync(path.join(directory("tsx"), file), text);
  };
  const handlerOf = (text: string) =>
    `import { Color } from "./color.ts";\nexport const main = (event: any) => {\n  if (event.extensions.request.query.fail) throw new Error("as asked");\n  if (event.extensions.request.query.stack) return new Error().stack;\n  return "${text} " + Color.Red;\n};\n`;
  write("handler.ts", handlerOf("one"));
  write("color.ts", "export enum Color { Red = 1 }\n");
  const dev = await startDev("tsx");
  expect(await ask(dev.url)).toEqual({ status: 200, body: "one 1" });
  write("handler.ts", handlerOf("two"));
  await expect.poll(() => ask(dev.url)).toEqual({ status: 200, body: "two 1" });
  write("color.ts", "export enum Color { Red = 7 }\n");
  await expect.poll(() => ask(dev.url)).toEqual({ status: 200, body: "two 7" });
  expect(await ask(`${dev.url}?fail=1`)).toMatchObject({ status: 500 });
  await expect.poll(() => dev.output()).toContain("handler.ts:3:");
  expect((await ask(`${dev.url}?stack=1`)).body).toContain("handler.ts:4:");
  write("color.ts", "export enum Color { Red = }\n");
  await expect
    .poll(() => ask(dev.url))
    .toMatchObject({ status: 500, body: expect.stringContaining("color.ts:1:27") });
  // Without an enum Node.js runs it as it is again.
  write("color.ts", "export const Color = { Red: 8 };\n");
  await expect.poll(() => ask(dev.url)).toEqual({ status: 200, body: "two 8" });
});

describe("spry init", () => {
  test("creates a directory, names the next commands, and overwrites nothing", async () => {
    const first = await command("init", directory("hello"));
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain("spry dev");
    expect(first.stdout).toContain("spry deploy");
    const longest = Math.max(...first.stdout.split("\n").map((line) => line.length));
    expect(longest - directory("hello").length).toBeLessThan(80);
    const text = readFileSync(path.join(directory("hello"), "spry.yaml"), "utf8");
    const [, schema = ""] = /^# yaml-language-server: \$schema=(.+)$/m.exec(text) ?? [];
    expect(existsSync(path.join(directory("hello"), schema))).toBe(true);
    expect(text).toContain("name: hello");

    writeFileSync(path.join(directory("hello"), "handler.ts"), "mine");
    const again = await command("init", directory("hello"));
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("handler.ts");
    expect(readFileSync(path.join(directory("hello"), "handler.ts"), "utf8")).toBe("mine");
    expect((await command("init", directory("hello"), "--force")).code).toBe(0);
  });

  const mistakes: [string, string[], string][] = [
    ["a template that does not exist", ["--template", "cobol"], "use one of http, js, hono"],
    ["a runtime that does not exist", ["--runtime", "nodejs18"], "use nodejs24"],
    ["a name in capitals", ["--name", "Shop"], "lower-case"],
  ];
  test.each(mistakes)("refuses %s", async (_name, args, words) => {
    const { code, stderr } = await command("init", directory("refused"), ...args);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    expect(existsSync(directory("refused"))).toBe(false);
  });

  test("every template of Node.js passes the test that it comes with", async () => {
    for (const name of ["http", "js", "queue", "cloudevent", "cron"]) {
      await command("init", directory(`t-${name}`), "--template", name);
      const result = await run(process.execPath, [
        "--test",
        ...["handler.test.ts", "handler.test.js"]
          .map((file) => path.join(directory(`t-${name}`), file))
          .filter(existsSync),
      ]);
      expect({ name, ...result }).toMatchObject({ name, code: 0 });
    }
  });
});

describe("spry dev", () => {
  test("answers with new code right after a save, and with the error while it cannot be loaded", async () => {
    await command("init", directory("loop"), "--template", "js");
    edit("loop", "spry.yaml", "Hello", "Good day");
    const { url, end, output } = await startDev("loop");
    expect(await ask(url)).toEqual({ status: 200, body: '{"message":"Good day, world!"}' });
    for (let round = 0; round < 5; round++) {
      edit("loop", "handler.js", round === 0 ? "message" : `r${round - 1}`, `r${round}`);
      expect((await ask(url)).body).toContain(`{"r${round}":`);
    }
    edit("loop", "handler.js", "Response.json(", "Response.json(;");
    const broken = await ask(url);
    expect(broken.status).toBe(500);
    expect((JSON.parse(broken.body) as { error: string }).error).toMatch(
      /^handler\.js:5: SyntaxError: Unexpected token ';'/,
    );
    expect((await ask(url, { accept: "text/html" })).body).toMatch(
      /^<!doctype html>[^]*handler\.js:5/,
    );
    expect(output()).toContain("✘ handler.js:5: SyntaxError");
    // Once, with the line and its mark below it.
    expect(output().match(/SyntaxError/g)).toHaveLength(1);
    expect(output()).toMatch(/✘ handler\.js:5: .*\n .*Response\.json\(;.*\n +\^\n/);
    edit("loop", "handler.js", "Response.json(;", "Response.json(");
    expect((await ask(url)).status).toBe(200);
    // What a handler throws: a browser shows where, a program gets what the platform answers.
    edit("loop", "handler.js", "return", 'throw new TypeError("no <order>"); return');
    expect(await ask(url)).toEqual({ status: 500, body: "Internal server error" });
    expect((await ask(url, { accept: "text/html" })).body).toMatch(
      /<h1>handler\.js:\d+: TypeError: no &lt;order&gt;<\/h1>/,
    );
    edit("loop", "handler.js", 'throw new TypeError("no <order>"); return', "return");
    // Settings count, too.
    edit("loop", "spry.yaml", "Good day", "Good night");
    expect((await ask(url)).body).toContain("Good night");
    writeFileSync(path.join(directory("loop"), ".env"), "GREETING=Secretly\nno variable\n");
    expect((await ask(url)).body).toContain("Secretly");
    expect(output()).toMatch(/\.env:2: this line is not NAME=VALUE$/m);
    expect(output()).not.toContain("no variable");
    edit("loop", "spry.yaml", "env:", "envv:");
    expect((await ask(url)).body).toContain("spry.yaml:5: envv is not a known key");
    const inIt = path.join(home, "cache");
    expect(await end()).toBe(130);
    expect(processesWith(`TMPDIR=${inIt}`)).toEqual([]);
  });

  test.each([
    [
      "has neither exports nor a server",
      "handler.js",
      "",
      /handler\.js: it does not export a function named main; it has no exports/,
    ],
    [
      "has neither, and runs on",
      "handler.js",
      "setInterval(() => {}, 1000);",
      /handler\.js has no exports and no listening server yet/,
    ],
    [
      "awaits what never comes",
      "handler.mjs",
      "await new Promise(() => {});",
      /handler\.mjs: a top-level await waits for what never comes/,
    ],
    [
      "awaits, and runs on",
      "handler.mjs",
      "setInterval(() => {}, 1000); await new Promise(() => {});",
      /handler\.mjs has not loaded yet: if a top-level await waits/,
    ],
  ])("says soon what is missing where the code %s", async (what, file, code, says) => {
    const name = `missing-${what.length}`;
    mkdirSync(directory(name));
    writeFileSync(path.join(directory(name), file), code);
    const spryDev = [spry, "dev", "--port", "0", directory(name)];
    const child = spawn(process.execPath, spryDev, {
      env: { ...cleanEnvironment(), XDG_CACHE_HOME: path.join(home, "cache") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await expect.poll(() => output).toMatch(says);
    expect(child.exitCode).toBeNull();
    // A save is answered with the new code, also while the old one waits.
    writeFileSync(path.join(directory(name), file), "export const main = () => 'new';\n");
    await expect.poll(() => output).toMatch(/new code answers|ready after/);
    expect(await endChild(child, "SIGINT")).toBe(130);
  });

  test("--json reports what happens to programs, an object a line", async () => {
    await command("init", directory("reported"), "--template", "js");
    const { url, end, output } = await startDev("reported", "--json");
    const events = () => {
      const lines = output().split("\n").slice(0, -1);
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    };
    const reported = (event: string, fields: object = {}) =>
      until(() => events().some((each) => isLike(each, { event, ...fields })));
    expect(events()[0]).toMatchObject({ event: "ready", function: "reported", loaded: true });
    await ask(`${url}?name=you`);
    await reported("request", { method: "GET", path: "/?name=you", status: 200 });
    edit("reported", "handler.js", "Response.json(", "Response.json(;");
    await reported("change", { file: "handler.js" });
    await reported("reload", { ok: false, file: "handler.js", line: 5 });
    expect(events().find(({ ok }) => ok === false)).toMatchObject({
      message: "SyntaxError: Unexpected token ';'",
    });
    edit("reported", "handler.js", "Response.json(;", 'console.log("here"); return Response.json(');
    await reported("reload", { ok: true });
    await ask(url);
    await reported("output", { stream: "stdout", line: "here" });
    edit("reported", "spry.yaml", "env:", "envv:");
    await reported("reload", { ok: false, file: "spry.yaml", line: 5 });
    expect(await end()).toBe(130);
    expect(events().at(-1)).toEqual({ time: expect.any(String), event: "stop" });
    const refused = await command("dev", path.join(home, "nowhere"), "--json");
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      event: "failed",
      message: expect.stringContaining("is not a directory"),
      wayOut: expect.any(String),
    });
  });

  test("leaves no process and no directory behind when it is killed", async () => {
    await command("init", directory("killed"), "--template", "js");
    const killed = await startDev("killed");
    const { child, url } = killed;
    expect((await ask(url)).status).toBe(200);
    const own = /(?:^|\0)HOME=([^\0]+spry-dev-[^\0]+)/;
    const scratch = readdirSync("/proc").flatMap((pid) => {
      try {
        const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        const environ = readFileSync(`/proc/${pid}/environ`, "latin1");
        return Number(parent) === child.pid ? (own.exec(environ)?.[1] ?? []) : [];
      } catch {
        return [];
      }
    })[0];
    expect(scratch).toBeDefined();
    child.kill("SIGKILL");
    running.delete(killed);
    await until(() => processesWith(`HOME=${scratch}`).length === 0);
    await until(() => !existsSync(scratch ?? ""));
  });

  test("finishes open requests on the old code", async () => {
    await command("init", directory("open"), "--template", "js");
    const code = (text: string) =>
      `export default { async fetch(r) { if (r.url.endsWith("slow")) await new Promise((f) => setTimeout(f, 800)); return new Response("${text}"); } };`;
    writeFileSync(path.join(directory("open"), "handler.js"), code("old"));
    const { url } = await startDev("open");
    const slow = ask(`${url}slow`);
    await pause(200);
    writeFileSync(path.join(directory("open"), "handler.js"), code("new"));
    expect((await ask(url)).body).toBe("new");
    expect((await slow).body).toBe("old");
  });

  test("installs packages elsewhere, and uses those that the directory has", async () => {
    await command("init", directory("packages"), "--template", "js");
    const place = directory("packages");
    const packed = path.join(place, "greeting");
    mkdirSync(packed, { recursive: true });
    const manifest = (name: string, more: object = {}) =>
      JSON.stringify({ name, version: "1.0.0", ...more });
    writeFileSync(path.join(packed, "package.json"), manifest("greeting"));
    writeFileSync(path.join(packed, "index.js"), "exports.greeting = 'from a package';");
    const own = { type: "module", dependencies: { greeting: "file:greeting" } };
    writeFileSync(path.join(place, "package.json"), manifest("packages", own));
    const handler = `import { greeting } from "greeting";\nexport default { fetch: () => new Response(greeting) };`;
    writeFileSync(path.join(place, "handler.js"), handler);
    const { url } = await startDev("packages");
    expect((await ask(url)).body).toBe("from a package");
    expect(existsSync(path.join(place, "node_modules"))).toBe(false);
  });

  test.skipIf(!python)("does the same for Python", async () => {
    await command("init", directory("py"), "--runtime", `python${python?.replace(".", "")}`);
    const { url } = await startDev("py");
    expect((await ask(url)).body).toBe('{"message": "Hello, world!"}');
    edit("py", "handler.py", '"message"', '"text"');
    expect((await ask(url)).body).toBe('{"text": "Hello, world!"}');
    edit("py", "handler.py", "import os", "import os oops");
    expect(JSON.parse((await ask(url)).body)).toMatchObject({
      error: "handler.py:2: SyntaxError: invalid syntax",
    });
    writeFileSync(
      path.join(directory("py"), "handler.py"),
      "def main(event, context):\n    return {}['a']\n",
    );
    expect((await ask(url, { accept: "text/html" })).body).toMatch(
      /<h1>handler\.py:2: KeyError: 'a'<\/h1>/,
    );
    expect(existsSync(path.join(directory("py"), "__pycache__"))).toBe(false);
  });

  test("has the environment of the platform, and of this machine nothing", async () => {
    await command("init", directory("env"), "--template", "js");
    writeFileSync(
      path.join(directory("env"), "handler.js"),
      "export default { fetch: () => Response.json(process.env) };",
    );
    process.env["SPRY_STRAY"] = "stray";
    const { url } = await startDev("env").finally(() => delete process.env["SPRY_STRAY"]);
    const env = JSON.parse((await ask(url)).body) as Record<string, string>;
    expect(env).toMatchObject({
      FUNC_RUNTIME: "nodejs24",
      FUNC_NAME: "env",
      SERVICE_NAMESPACE: "default",
      GREETING: "Hello",
      PUBLISHER_PROXY_ADDRESS: expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:\d+\/[-\da-f]{36}\/publish$/,
      ),
    });
    expect(env).not.toHaveProperty("SPRY_STRAY");
  });

  test("sends the example event, and shows what the Function publishes", async () => {
    await command("init", directory("events"), "--template", "cloudevent");
    // The signal arrives at the very moment at which the address is printed.
    const preload = `data:text/javascript,${encodeURIComponent(`
      const write = process.stdout.write.bind(process.stdout);
      process.stdout.write = (...args) => {
        const result = write(...args);
        if (String(args[0]).includes("ready after")) process.kill(process.pid, "SIGUSR2");
        return result;
      };`)}`;
    const { output } = await startDevWith({ NODE_OPTIONS: `--import=${preload}` }, "events");
    await until(() => output().includes("published"));
    expect(output()).toContain("order.created.v1 from shop: order A-1");
    expect(output()).toContain('published order.large.v1 from shop: {"id":"A-1","amount":120}');
  });

  test.skipIf(!olderNode)(
    "passes signals on where an older Node.js has started it, and outlives them",
    async () => {
      await command("init", directory("signals"), "--template", "cloudevent");
      const variables = { XDG_CACHE_HOME: path.join(home, "cache"), KUBECONFIG: "/nonexistent" };
      const child = spawn(olderNode ?? "", [spry, "dev", "--port", "0", directory("signals")], {
        env: { ...cleanEnvironment(), ...variables },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
      await until(() => output.includes("ready after"));
      const emitted = () => output.split("order.created.v1 from shop: order A-1").length - 1;
      for (const times of [1, 2]) {
        child.kill("SIGUSR2");
        await until(() => emitted() === times);
      }
      expect(await endChild(child, "SIGINT")).toBe(130);
    },
  );

  test("leads the names of neighbours to the addresses that the user names", async () => {
    await command("init", directory("stock"), "--template", "js");
    await command("init", directory("shop"), "--template", "js");
    writeFileSync(
      path.join(directory("shop"), "handler.js"),
      `export default { async fetch() { return new Response(await (await fetch("http://stock.default.svc.cluster.local/?name=shop")).text()); } };`,
    );
    const stock = await startDev("stock");
    const shop = await startDev("shop", "--neighbour", `stock=${stock.url}`);
    expect((await ask(shop.url)).body).toBe('{"message":"Hello, shop!"}');
  });

  test.skipIf(!python)("has debugpy for the debugger of Python", async () => {
    await command("init", directory("bug"), "--runtime", `python${python?.replace(".", "")}`);
    const port = await freePort();
    const { url, output } = await startDev("bug", `--inspect=${port}`);
    expect((await ask(url)).status).toBe(200);
    expect(output()).toContain(`Debugger listening on 127.0.0.1:${port}`);
  });

  test("finds the packages that are installed around a workspace", async () => {
    for (const [file, content] of Object.entries({
      "package.json": `{ "workspaces": ["apps/*", "shared"] }`,
      "shared/package.json": `{ "name": "@mono/shared", "version": "1.0.0" }`,
      "shared/index.js": "module.exports = 'shared';",
      "apps/fn/package.json": `{ "name": "fn", "dependencies": { "@mono/shared": "*" } }`,
      "apps/fn/handler.js": "exports.main = () => require('@mono/shared');",
      "node_modules/.package-lock.json": `{ "packages": { "apps/fn": {}, "shared": {} } }`,
    })) {
      mkdirSync(path.dirname(path.join(directory("mono"), file)), { recursive: true });
      writeFileSync(path.join(directory("mono"), file), content);
    }
    mkdirSync(path.join(directory("mono"), "node_modules/@mono"));
    symlinkSync("../../shared", path.join(directory("mono"), "node_modules/@mono/shared"));
    const { url } = await startDev("mono/apps/fn");
    expect((await ask(url)).body).toBe("shared");
  });

  test("opens the debugger's port for the newest code", async () => {
    await command("init", directory("debug"), "--template", "js");
    const { url, output } = await startDev("debug", `--inspect=${await freePort()}`);
    expect((await ask(url)).status).toBe(200);
    const urls = () =>
      [...output().matchAll(/Debugger listening on (ws:\S+)/g)].map(([, ws]) => ws);
    expect(urls()).toHaveLength(1);
    edit("debug", "handler.js", "message", "other");
    expect((await ask(url)).body).toContain("other");
    expect(urls()).toHaveLength(2);
  });

  test("--inspect-brk stops at the first line of the Function's code, not of the runtime's", async () => {
    await command("init", directory("stop"), "--template", "js");
    edit("stop", "handler.js", "export default", "const begun = Date.now();\nexport default");
    const port = await freePort();
    const starting = startDev("stop", `--inspect-brk=${port}`);
    let place: string | undefined;
    const target = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/json/list`).catch(() => undefined);
      const [first] = ((await response?.json()) ?? []) as { webSocketDebuggerUrl: string }[];
      return first?.webSocketDebuggerUrl;
    };
    while (!(place = await target())) await pause(10);
    const socket = new WebSocket(place);
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const scripts = new Map<string, string>();
    interface Place {
      scriptId: string;
      lineNumber: number;
    }
    const paused = new Promise<Place>((resolve) => {
      socket.addEventListener("message", ({ data }) => {
        const { method, params } = JSON.parse(String(data));
        if (method === "Debugger.scriptParsed") scripts.set(params.scriptId, params.url);
        if (method === "Debugger.paused") resolve(params.callFrames[0].location);
      });
    });
    const methods = ["Debugger.enable", "Runtime.runIfWaitingForDebugger"];
    for (const [id, method] of methods.entries()) socket.send(JSON.stringify({ id, method }));
    const { scriptId, lineNumber } = await paused;
    expect(scripts.get(scriptId)).toMatch(/stop\/handler\.js$/);
    expect(lineNumber).toBe(0);
    socket.send(JSON.stringify({ id: 9, method: "Debugger.resume" }));
    expect((await ask((await starting).url)).status).toBe(200);
    socket.close();
  });

  const mistakes: [string, () => string[], string][] = [
    ["a directory that does not exist", () => ["nope"], "nope is not a directory"],
    ["a directory without a handler", () => [home], "has no handler for the runtime"],
    ["a port that is not one", () => [home, "--port", "abc"], "abc is not a valid port"],
  ];
  test.each(mistakes)("refuses %s", async (_name, args, words) => {
    const { code, stderr } = await command("dev", ...args());
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
  });
});
