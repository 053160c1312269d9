import { type ChildProcess, spawn } from "node:child_process";
import { lastWordsFile } from "./last-words.ts";

/**
 * Ends the process when its event loop has stood still for so long: a handler that never returns
 * would leave everybody waiting, and only a new process helps. Says first where it hangs.
 *
 * A thread that watches would cost 14 MB and 40 ms. A shell that sleeps costs nothing, and looks,
 * when it wakes, whether the event loop has sent it a signal meanwhile. Where there is no shell,
 * nothing watches.
 */
export function watchEventLoop(limitMs: number, requestsUnderWay: () => string): void {
  // The process that looks is another one: it finds it by this name.
  Object.defineProperty(process, Symbol.for("spry.requests"), { value: requestsUnderWay });
  // Only for the moment that it takes to look: the inspector listens on loopback. None of the ports that systems hand to
  // connections, of which any may be taken.
  process.debugPort = 10_000 + (process.pid % 20_000);
  const seconds = Math.round(limitMs / 1000);
  const nap = Math.max(1, Math.floor(seconds / 3));
  let sleeper = startSleeper(seconds, nap);
  // Twice as often as it looks: neither of them is punctual.
  const timer = setInterval(() => {
    // A process that could not be started has no id: there is no shell.
    if (sleeper.pid === undefined) return clearInterval(timer);
    const hasEnded = sleeper.exitCode !== null || sleeper.signalCode !== null;
    if (hasEnded) sleeper = startSleeper(seconds, nap);
    else sleeper.kill("SIGUSR1");
  }, nap * 500).unref();
  process.on("exit", () => stop(sleeper));
}

function startSleeper(seconds: number, nap: number): ChildProcess {
  const script = `
    silent=0
    trap silent=0 USR1
    while [ $silent -lt ${Math.ceil(seconds / nap)} ]; do
      silent=$((silent + 1))
      sleep ${nap}
      # The second is for a main process that got no processor, or was frozen.
      [ $silent -lt ${Math.ceil(seconds / nap)} ] || sleep 1
      kill -0 $PPID 2>/dev/null || exit
    done
    exec "$0" -e "$1" "$2" "$3" "$4" "$5" "$6"`;
  const place = [`file://${__filename}`, lastWordsFile()];
  const facts = [process.pid, process.debugPort, seconds, ...place].map(String);
  const args = ["-c", script, process.execPath, `(${endBlocked.toString()})()`, ...facts];
  // A group of its own: the shell ends together with its sleep.
  const sleeper = spawn("/bin/sh", args, {
    detached: true,
    stdio: ["ignore", "ignore", "inherit"],
    env: {},
  });
  sleeper.on("error", () => {});
  sleeper.unref();
  return sleeper;
}

function stop({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** Runs in the process that has woken up, from its text: it can use nothing of this file. */
async function endBlocked(): Promise<void> {
  const [pid = 0, port, seconds] = process.argv.slice(1, 4).map(Number);
  const [runtimeFile, lastWords = ""] = process.argv.slice(4);
  if (process.ppid !== pid) return;
  const { openSync, writeSync } = process.getBuiltinModule("node:fs");
  let words: number | undefined;
  try {
    words = openSync(lastWords, "r+");
  } catch {
    // Outside of a container there are none.
  }
  // To the log, and as the container's termination message: the log may have much of other requests.
  const say = (text: string) => {
    process.stderr.write(text);
    if (words !== undefined) writeSync(words, text);
  };
  say(`the handler has been blocking the event loop for ${seconds} s\n`);
  // For a loop in native code, which cannot be interrupted to say where it is.
  setTimeout(() => process.kill(pid, "SIGKILL") && process.exit(), 3000);
  process.kill(pid, "SIGUSR1");
  let url: string | undefined;
  while (url === undefined) {
    const list = await fetch(`http://127.0.0.1:${port}/json/list`).catch(() => undefined);
    if (list) [{ webSocketDebuggerUrl: url }] = (await list.json()) as [Record<string, string>];
    else await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const files = new Map<string, string>();
  const inspector = new WebSocket(url);
  let id = 0;
  let asked = -1;
  const post = (method: string, params = {}) => {
    inspector.send(JSON.stringify({ id: ++id, method, params }));
    return id;
  };
  inspector.onopen = () => {
    post("Debugger.enable");
    post("Debugger.pause");
  };
  inspector.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    const { method, params } = message;
    if (message.id === asked) {
      const { value } = message.result?.result ?? {};
      if (value) say(`the process ends${value}\n`);
      // As process 1 of a container nothing but its own exit ends it.
      post("Runtime.evaluate", { expression: "globalThis.process.reallyExit(1)" });
      setTimeout(() => process.exit(), 200);
    }
    if (method === "Debugger.scriptParsed") files.set(params.scriptId, params.url);
    if (method !== "Debugger.paused") return;
    for (const { functionName, location } of params.callFrames.slice(0, 30)) {
      const file = files.get(location.scriptId) ?? "";
      if (file === runtimeFile || file.startsWith("node:")) continue;
      const place = `${file}:${location.lineNumber + 1}:${location.columnNumber + 1}`;
      say(`    at ${functionName || "<anonymous>"} (${place})\n`);
    }
    const expression = "globalThis.process[Symbol.for('spry.requests')]?.()";
    asked = post("Runtime.evaluate", { expression, returnByValue: true });
  };
}

/** An event of the inspector's, or its response to what was sent with the same id. */
interface Message {
  id?: number;
  method?: string;
  params: Paused;
  result?: { result?: { value?: string } };
}

/** Of the inspector's `Debugger.scriptParsed` and `Debugger.paused`. */
interface Paused {
  scriptId: string;
  url: string;
  callFrames: {
    functionName: string;
    location: { scriptId: string; lineNumber: number; columnNumber: number };
  }[];
}
