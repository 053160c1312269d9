import { connect, type Socket } from "node:net";
import { freePort } from "@spry/test-kit";
import { describe, expect, test } from "vitest";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = missingPython ? undefined : installPackages("debugpy");
const patience = { timeout: 30_000 };

test.skipIf(missingPython)(
  "a debugger that is not installed is named with the way out",
  async () => {
    await using runtime = await PythonRuntime.launch("def main(event, context): pass", {
      FUNC_INSPECT: "true",
    });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toMatch(/^FUNC_INSPECT: the package debugpy is not installed; add it/);
  },
);

test.skipIf(missingPython)("a port that is taken is named", async () => {
  await using other = await PythonRuntime.start("def main(event, context): pass");
  await using runtime = await PythonRuntime.launch("def main(event, context): pass", {
    FUNC_INSPECT: String(other.port),
  });
  expect(await runtime.exited).toBe(1);
  expect(runtime.output).toContain(`listening on 127.0.0.1:${other.port}: Address already in use`);
});

describe.skipIf(!packages)("debugpy, which pip installs", () => {
  test.each(["def", "async def"])(
    "stops in %s, and after a reload in the new code, on the same port",
    { timeout: 60_000 },
    async (form) => {
      const code = (text: string) =>
        `${form} main(event, context):\n    text = "${text}"\n    return text`;
      const port = await freePort();
      await using runtime = await PythonRuntime.start(code("first"), {
        FUNC_INSPECT: String(port),
        FUNC_HOT_RELOAD: "true",
        PYTHONPATH: packages ?? "",
      });
      const stopAndGo = async (text: string) => {
        using debuggerClient = new DebuggerClient(port);
        await debuggerClient.attach(runtime.file("handler.py"), 3);
        const answer = runtime.call();
        expect(await debuggerClient.variableWhereItStops("text")).toBe(`'${text}'`);
        debuggerClient.continue();
        expect((await answer).body).toBe(text);
      };
      await stopAndGo("first");
      runtime.write("handler.py", "def main(:");
      await expect.poll(() => runtime.output, patience).toContain("keeps serving");
      await stopAndGo("first");
      runtime.write("handler.py", code("other"));
      await expect.poll(async () => (await runtime.call()).body, patience).toBe("other");
      await stopAndGo("other");
      expect(runtime.output).not.toContain("Address already in use");
    },
  );

  test("can be waited for", { timeout: 60_000 }, async () => {
    const port = await freePort();
    await using runtime = await PythonRuntime.launch(
      "loaded = 1\ndef main(event, context): return 'ok'",
      {
        FUNC_INSPECT: `${port},wait`,
        PYTHONPATH: packages ?? "",
      },
    );
    await expect.poll(() => runtime.output, patience).toContain("Debugger listening on");
    using debuggerClient = new DebuggerClient(port);
    await debuggerClient.attach(runtime.file("handler.py"), 1);
    await debuggerClient.variableWhereItStops("__name__");
    debuggerClient.continue();
    await runtime.ready;
    expect((await runtime.call()).body).toBe("ok");
  });
});

interface Message {
  type: string;
  command?: string;
  event?: string;
  body?: Record<string, unknown>;
  success?: boolean;
  message?: string;
}

/** As much of the Debug Adapter Protocol as an editor needs to stop on a line. */
class DebuggerClient {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #messages: Message[] = [];
  #wake = () => {};
  #sequence = 0;
  #thread = 0;
  #closed = false;

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1").on("error", () => {});
    this.#socket.on("data", (data) => this.#take(data));
    this.#socket.on("close", () => {
      this.#closed = true;
      this.#wake();
    });
  }

  async attach(file: string, line: number): Promise<void> {
    this.#send("initialize", { adapterID: "python" });
    await this.#next((each) => each.command === "initialize");
    this.#send("attach", { justMyCode: false });
    await this.#next((each) => each.event === "initialized");
    this.#send("setBreakpoints", { source: { path: file }, breakpoints: [{ line }] });
    await this.#next((each) => each.command === "setBreakpoints");
    this.#send("configurationDone", {});
    await this.#next((each) => each.command === "attach");
  }

  async variableWhereItStops(name: string): Promise<unknown> {
    const stopped = await this.#next((each) => each.event === "stopped");
    this.#thread = Number(stopped.body?.["threadId"]);
    this.#send("stackTrace", { threadId: this.#thread });
    const { body } = await this.#next((each) => each.command === "stackTrace");
    const [frame] = (body?.["stackFrames"] ?? []) as { id: number }[];
    this.#send("evaluate", { expression: name, frameId: frame?.id });
    return (await this.#next((each) => each.command === "evaluate")).body?.["result"];
  }

  continue(): void {
    this.#send("continue", { threadId: this.#thread });
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #send(command: string, args: object): void {
    const text = JSON.stringify({
      seq: ++this.#sequence,
      type: "request",
      command,
      arguments: args,
    });
    this.#socket.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  #take(data: Buffer): void {
    this.#received = Buffer.concat([this.#received, data]);
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n\r\n/.exec(this.#received.toString("latin1"));
      const end = head ? head[0].length + Number(head[1]) : Infinity;
      if (!head || this.#received.length < end) break;
      const text = this.#received.subarray(head[0].length, end).toString();
      this.#messages.push(JSON.parse(text) as Message);
      this.#received = this.#received.subarray(end);
    }
    this.#wake();
  }

  async #next(wanted: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const at = this.#messages.findIndex(wanted);
      const [message] = at < 0 ? [] : this.#messages.splice(at, 1);
      if (message?.success === false) throw new Error(`${message.command}: ${message.message}`);
      if (message) return message;
      if (this.#closed) throw new Error("the debugger has closed the connection");
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
