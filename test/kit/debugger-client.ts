import { connect, type Socket } from "node:net";

interface Message {
  type: string;
  command?: string;
  event?: string;
  body?: Record<string, unknown>;
  success?: boolean;
  message?: string;
}

/** As much of the Debug Adapter Protocol as an editor needs to stop on a line. */
export class DebuggerClient {
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
