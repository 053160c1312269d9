/** The runtime in a further thread of a Lambda handler: loads the code, and runs the events that the first thread sends. */
import { inspect } from "node:util";
import { type MessagePort, parentPort } from "node:worker_threads";
import { type FunctionHandler } from "../handler.ts";
import { logError } from "../log.ts";
import { type Settings } from "../settings.ts";
import { type Tracing } from "../tracing/tracing.ts";
import { type LambdaCall } from "./event-line.ts";
import { type EventMessage, type FromThread, type ToThread } from "./thread-messages.ts";

/** `handler` has been started. */
export async function serveEvents(handler: FunctionHandler, settings: Settings): Promise<void> {
  const port = parentPort;
  const { runEvent, stop } = handler;
  if (!port || !runEvent) throw new Error("the code has no Lambda handler in a further thread");
  const exit = tellingExit();
  const tracing = await tracingOf(settings);
  const follow = await followerOf(settings);
  let isRunning = false;
  const say = (message: FromThread) => {
    isRunning = false;
    post(port, message);
  };
  const run = async (message: EventMessage) => {
    isRunning = true;
    if (message.trace) tracing.enterCaller(Object.fromEntries(message.trace));
    else tracing.leave();
    await answer(message, runEvent).then(say);
  };
  // As under node, the thread ends; the event is answered before.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error: unknown) => {
      logError(event === "uncaughtException" ? "uncaught exception" : "unhandled rejection", error);
      if (process.listenerCount(event) > 1) return;
      if (isRunning) say({ error: "its thread ended by the error above" });
      exit(1);
    });
  }
  port.on("message", (message: ToThread) => {
    if (message !== "stop") return follow(message, () => void run(message));
    void Promise.resolve(stop?.())
      .catch((error: unknown) => logError("stopping the Function", error))
      .then(() => exit(0));
  });
  post(port, "ready");
}

/** The Function ends only this thread by it. Returns what ends it without a word. */
function tellingExit(): typeof process.exit {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const call = new Error(`process.exit(${code ?? ""}) was called`);
    logError("the Function ended the thread of its event", call);
    return exit(code);
  };
  return exit;
}

async function answer(
  call: LambdaCall,
  runEvent: (call: LambdaCall) => Promise<unknown>,
): Promise<FromThread> {
  try {
    return { result: await runEvent(call) };
  } catch (error) {
    return typeof error === "string" ? { text: error } : { error: inspect(error) };
  }
}

/** What has no copy in another thread, such as a function, is what JSON makes of it, as in AWS. */
function post(port: MessagePort, message: FromThread): void {
  try {
    port.postMessage(message, []);
  } catch {
    if (typeof message !== "object" || !("result" in message)) return;
    try {
      port.postMessage({ result: asJson(message.result) }, []);
    } catch (error) {
      port.postMessage({ error: inspect(error) }, []);
    }
  }
}

function asJson(value: unknown): unknown {
  const text: string | undefined = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

async function tracingOf(settings: Settings): Promise<Tracing> {
  const { Tracing } = await import("../tracing/tracing.ts");
  return new Tracing(settings);
}

async function followerOf({ logFormat }: Settings) {
  if (!logFormat) return (_message: EventMessage, act: () => void) => act();
  const { formatLogs, runInvocation } = await import("../invocation-log.ts");
  formatLogs(logFormat);
  return ({ requestId }: EventMessage, act: () => void) =>
    runInvocation({ headers: { "x-request-id": requestId } }, act);
}
