/** What `spry init` writes for VS Code, against what `spry dev` prints and what its inspector does. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { findPython } from "@spry/machine";
import { freePort } from "@spry/test-kit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { pause, root, run } from "../support/platform.ts";
import { type DevProcess, startSpryDev } from "../support/spry-dev.ts";

const spry = path.join(root, "packages/cli/bin/spry.mjs");
const python = (await findPython("3.12")) ? "python312" : undefined;
let home: string;
const running = new Set<DevProcess>();

beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), "spry-vscode-test-"));
});
afterEach(async () => {
  for (const each of running) await each.end();
  running.clear();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const init = (name: string, ...args: string[]) =>
  run(process.execPath, [spry, "init", path.join(home, name), ...args]);

function write(name: string, content: string): void {
  const file = path.join(home, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

async function start(name: string, ...args: string[]): Promise<DevProcess> {
  const env = { XDG_CACHE_HOME: path.join(home, "cache"), KUBECONFIG: "/nonexistent" };
  const started = await startSpryDev([path.join(home, name), ...args], env);
  running.add(started);
  return started;
}

interface Matcher {
  pattern: { regexp: string; file: number; line: number; message: number };
  background: { beginsPattern: string; endsPattern: string };
}

/** What the editor shows after these lines, and whether it waits for the end of a round. */
function seenBy({ pattern, background }: Matcher, output: string) {
  let isActive = true;
  let problems: string[] = [];
  for (const line of output.split("\n")) {
    if (!isActive && new RegExp(background.beginsPattern).test(line)) {
      isActive = true;
      problems = [];
    } else if (isActive && new RegExp(background.endsPattern).test(line)) isActive = false;
    const found = new RegExp(pattern.regexp).exec(line);
    if (found) problems.push(`${found[pattern.file]}:${found[pattern.line]}`);
  }
  return { isActive, problems };
}

function matchersOf(name: string): Matcher[] {
  const file = path.join(home, name, ".vscode/tasks.json");
  return JSON.parse(readFileSync(file, "utf8")).tasks[0].problemMatcher;
}

const good = { "handler.mjs": "export default { fetch: () => new Response('ok') };\n" };
const kinds: [string, string[], string, string][] = [
  ["js", ["--template", "js"], "handler.js", good["handler.mjs"]],
  ["ts", [], "handler.ts", `enum A { B }\n${good["handler.mjs"]}`],
  ["py", ["--runtime", "python312"], "handler.py", "def main(event, context):\n    return 'ok'\n"],
];

test.each(kinds.filter(([kind]) => kind !== "py" || python))(
  "the editor shows what cannot be loaded until it can (%s)",
  async (kind, args, file, code) => {
    await init(kind, ...args);
    const [matcher] = matchersOf(kind) as [Matcher];
    write(`${kind}/${file}`, code);
    const { output } = await start(kind);
    const seen = () => seenBy(matcher, output());
    expect(seen()).toEqual({ isActive: false, problems: [] });
    write(`${kind}/${file}`, `${code}\n)\n`);
    const line = code.split("\n").length + 1;
    await expect.poll(seen).toEqual({ isActive: false, problems: [`${file}:${line}`] });
    write(`${kind}/${file}`, code);
    await expect.poll(seen).toEqual({ isActive: false, problems: [] });
  },
);

test("mistakes of code that cannot be loaded at first are shown, too", async () => {
  await init("first", "--template", "js");
  write("first/handler.js", "export default {;\n");
  const { output } = await start("first");
  const [matcher] = matchersOf("first") as [Matcher];
  expect(seenBy(matcher, output())).toEqual({ isActive: false, problems: ["handler.js:1"] });
});

test("of several Functions each has its own mistakes and its own debugger", async () => {
  await init("shop", "--template", "pair");
  const port = await freePort();
  const { output } = await start("shop", `--inspect=${port}`);
  const [api, worker] = matchersOf("shop") as [Matcher, Matcher];
  expect(output()).toMatch(
    new RegExp(`^shop +│ Debugger listening on ws://127.0.0.1:${port}/`, "m"),
  );
  const second = `^shop-worker +│ Debugger listening on ws://127.0.0.1:${port + 1}/`;
  expect(output()).toMatch(new RegExp(second, "m"));
  write("shop/worker/handler.mjs", "export default {;\n");
  await expect
    .poll(() => seenBy(worker, output()))
    .toEqual({ isActive: false, problems: ["handler.mjs:1"] });
  expect(seenBy(api, output())).toEqual({ isActive: false, problems: [] });
});

const withEnum = `enum Size {
  Small = "small",
}

export default {
  fetch(request: Request): Response {
    const size: Size = Size.Small;
    return new Response(size + new URL(request.url).pathname);
  },
};
`;

interface Message {
  id?: number;
  method?: string;
  params: {
    url: string;
    scriptId: string;
    sourceMapURL: string;
    endLine: number;
    callFrames: object[];
  };
}

test("a breakpoint in compiled TypeScript is found by its place in the source, and is hit", async () => {
  await init("enums");
  write("enums/handler.ts", withEnum);
  const port = await freePort();
  const { url } = await start("enums", `--inspect=${port}`);
  const list = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = (await list.json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "");
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const messages: Message[] = [];
  socket.addEventListener("message", ({ data }) => messages.push(JSON.parse(String(data))));
  const message = async (is: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      const found = messages.find(is);
      if (found) return found;
      await pause(5);
    }
  };
  let sent = 0;
  /** Resolves once it is done: a request by another way may be handled before it otherwise. */
  const send = (method: string, params = {}) => {
    const id = ++sent;
    socket.send(JSON.stringify({ id, method, params }));
    return message((each) => each.id === id);
  };
  await send("Debugger.enable");
  const file = pathToFileURL(path.join(home, "enums/handler.ts")).href;
  const { params } = await message(
    (each) => each.method === "Debugger.scriptParsed" && each.params.url === file,
  );
  const map = JSON.parse(atob(params.sourceMapURL.split(",")[1] ?? ""));
  expect(new URL(map.sources[0], params.url).href).toBe(file);
  const lineNumber = placeOf(new SourceMap(map), 7, params.endLine);
  await send("Debugger.setBreakpoint", { location: { scriptId: params.scriptId, lineNumber } });
  const called = fetch(new URL("x", url));
  const paused = await message(({ method }) => method === "Debugger.paused");
  expect(paused.params.callFrames[0]).toMatchObject({
    functionName: "fetch",
    location: { scriptId: params.scriptId, lineNumber },
  });
  await send("Debugger.resume");
  expect(await (await called).text()).toBe("small/x");
  socket.close();
});

/** The line of the compiled code for one of the source; both count from 0. */
function placeOf(map: SourceMap, line: number, lines: number): number {
  for (let at = 0; at < lines; at++)
    for (let column = 0; column < 100; column++) {
      const entry = map.findEntry(at, column);
      if ("originalLine" in entry && entry.originalLine === line && entry.generatedLine === at)
        return at;
    }
  throw new Error(`line ${line} is not in the map`);
}
