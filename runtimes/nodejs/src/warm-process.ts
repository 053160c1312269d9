/**
 * A process that has loaded all of the runtime and waits for its Function: it takes over when a Function at zero is
 * called. It is started with an environment that belongs to no Function, is handed one Function, once, over a
 * descriptor that no other process has, and stays that Function's to its end.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { connect, type AddressInfo, Socket } from "node:net";
import { isAbsolute } from "node:path";
import { eventHandler } from "./event-handler.ts";
import { type UserFunction } from "./handler.ts";
import { importModule } from "./import-module.ts";
import { Metrics } from "./metrics.ts";
import { Publisher } from "./publisher.ts";
import { createFunctionServer } from "./server.ts";
import { readSettings } from "./settings.ts";

const limits = { messageBytes: 2 * 1024 * 1024 };
const rehearsals = 25;

interface HandedOver {
  /** Absolute path of the directory with the Function's code. */
  directory: string;
  /** All of the process's environment from now on. */
  env: Record<string, string>;
}

/**
 * Waits on the descriptor for one line, `{"directory": "…", "env": {…}}` in JSON, and becomes that
 * Function's process. Returns the directory; undefined when the other side closes it without a word.
 * Writes `waiting` and a line end to the descriptor `SPRY_READY_FD`, if there is one, when it has nothing left to prepare.
 */
export async function becomeFunction(descriptor: number): Promise<string | undefined> {
  await rehearse();
  const { readyDescriptor } = readSettings(process.env);
  if (readyDescriptor !== undefined) writeSync(readyDescriptor, "waiting\n");
  const line = await readLine(new Socket({ fd: descriptor, readable: true, writable: false }));
  if (line === "") return undefined;
  const { directory, env } = checked(JSON.parse(line));
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, env);
  process.chdir(directory);
  return directory;
}

/** Code is compiled when it first runs: so let all of it run. */
async function rehearse(): Promise<void> {
  const settings = readSettings({});
  // The machinery for ES modules is loaded with the first of them.
  const nothing = "data:text/javascript,";
  await importModule(nothing);
  const main: UserFunction = (event) => (event as { data?: unknown }).data ?? "nothing";
  const handler = eventHandler(main, settings, new Publisher(""));
  const server = createFunctionServer({ handler, settings, metrics: new Metrics("") });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const head = "HTTP/1.1\r\nhost: warm\r\n";
  for (let round = 0; round < rehearsals; round++) {
    socket.write(`GET /?a=1 ${head}\r\n`);
    await once(socket, "data");
    socket.write(`POST / ${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`);
    await once(socket, "data");
  }
  socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

async function readLine(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk;
    if (text.length > limits.messageBytes)
      throw new Error("receiving a Function: the line is too long");
    if (text.includes("\n")) break;
  }
  socket.destroy();
  return text.trim();
}

function checked(message: unknown): HandedOver {
  const { directory, env } = (message ?? {}) as Partial<HandedOver>;
  if (typeof directory !== "string" || !isAbsolute(directory))
    throw new Error("receiving a Function: its directory is not an absolute path");
  const isEnvironment =
    typeof env === "object" &&
    env !== null &&
    Object.values(env).every((value) => typeof value === "string");
  if (!isEnvironment)
    throw new Error("receiving a Function: its environment is not an object of strings");
  // What it was started with itself has counted.
  const late = Object.keys(env).find(
    (name) => /^(?:NODE|UV|SSL)_/.test(name) && env[name] !== process.env[name],
  );
  if (late !== undefined)
    throw new Error(`receiving a Function: ${late} has an effect only when a process starts`);
  return { directory, env };
}
