import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { relayInspector } from "./inspector-relay.ts";

interface Message {
  id?: number;
  method?: string;
  params?: { url?: string };
  result?: { locations?: unknown[] };
}

/** A program of another place than its debugger believes, and what the debugger sees of it. */
async function debugged() {
  const directory = path.join(
    realpathSync(mkdtempSync(path.join(tmpdir(), "relay-"))),
    "a b/usr/src/app/function",
  );
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, "handler.mjs"), "setInterval(() => {}, 1000);\n");
  const child = spawn(process.execPath, ["--inspect-brk=0", "handler.mjs"], { cwd: directory });
  onTestFinished(() => void child.kill("SIGKILL"));
  const inspectorPort = await new Promise<number>((resolve) => {
    let text = "";
    child.stderr.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const [, port] = /ws:\/\/127\.0\.0\.1:(\d+)\//.exec(text) ?? [];
      if (port !== undefined) resolve(Number(port));
    });
  });
  const relay = await relayInspector(0, { inspectorPort, directory });
  onTestFinished(() => relay.close());
  const listed = await fetch(`http://127.0.0.1:${relay.port}/json/list`);
  const [target] = (await listed.json()) as { url: string; webSocketDebuggerUrl: string }[];
  expect(target?.webSocketDebuggerUrl).toContain(`:${relay.port}/`);
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "");
  onTestFinished(() => socket.close());
  const messages: Message[] = [];
  socket.addEventListener("message", ({ data }) => messages.push(JSON.parse(String(data))));
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const next = async (fits: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      const found = messages.find(fits);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  let id = 0;
  const ask = (method: string, params = {}) => {
    const own = ++id;
    socket.send(JSON.stringify({ id: own, method, params }));
    return next((message) => message.id === own);
  };
  return { ask, next, target };
}

test("a debugger reads and writes the directory of images", async () => {
  const file = "file:///usr/src/app/function/handler.mjs";
  const { ask, next } = await debugged();
  const patterns = [
    String.raw`file:\/\/\/usr\/src\/app\/function\/handler\.mjs`,
    String.raw`[fF][iI][lL][eE]:\/\/\/[uU][sS][rR]\/[sS][rR][cC]\/[aA][pP][pP]\/[fF][uU][nN][cC][tT][iI][oO][nN]\/handler\.mjs`,
    String.raw`\/usr\/src\/app\/function\/handler\.mjs($|\?)`,
  ];
  await ask("Debugger.enable");
  await ask("Runtime.runIfWaitingForDebugger");
  await next(({ method, params }) => method === "Debugger.scriptParsed" && params?.url === file);
  for (const where of [{ url: file }, ...patterns.map((urlRegex) => ({ urlRegex }))]) {
    const { result } = await ask("Debugger.setBreakpointByUrl", { ...where, lineNumber: 0 });
    expect({ where, found: result?.locations?.length }).toEqual({ where, found: 1 });
    await ask("Debugger.removeBreakpoint", result);
  }
});
