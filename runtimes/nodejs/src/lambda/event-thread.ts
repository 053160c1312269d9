/** A thread that has loaded the Function's code, and runs one event at a time; `thread-main.ts` is its other side. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type FunctionResponse } from "../function-response.ts";
import { traceHeadersNow } from "../outgoing-trace.ts";
import { requestIdOf } from "../request-log.ts";
import { type EventPlace, type LambdaCall } from "./event-line.ts";
import { type FromThread, threadVariable, type ToThread } from "./thread-messages.ts";

/** For what the Function does at its end. */
const patienceMs = 10_000;

interface Running {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

export class EventThread implements EventPlace {
  isBusy = false;
  /** When it last had an event, by `Date.now`. */
  usedMs = Date.now();
  /** Called when it has ended, for whatever reason. */
  onEnd = (): void => {};
  /** Settles when the code is loaded; the thread itself says why it cannot be. */
  readonly ready: Promise<void>;
  readonly #worker: Worker;
  #running: Running | undefined;

  constructor(directory: string) {
    this.#worker = new Worker(`${__dirname}/server.cjs`, {
      env: { ...process.env, [threadVariable]: directory },
      argv: process.argv.slice(2),
    });
    this.#worker.unref();
    this.ready = new Promise((resolve, reject) => {
      let failure: unknown = new Error("the thread ended");
      this.#worker.on("message", (message: FromThread) => {
        if (message === "ready") resolve();
        else this.#hear(message);
      });
      this.#worker.on("error", (error) => (failure = error));
      this.#worker.once("exit", (code) => {
        reject(failure);
        const reason = failure instanceof Error ? failure.message : String(failure);
        this.#settle()?.reject(new Error(`the thread of its event ended (${code}): ${reason}`));
        this.onEnd();
      });
    });
    this.ready.catch(() => {});
  }

  async run({ event, endMs }: LambdaCall, { req }: FunctionResponse): Promise<unknown> {
    const answer = new Promise((resolve, reject) => (this.#running = { resolve, reject }));
    this.#send({ event, endMs, requestId: requestIdOf(req), trace: traceHeadersNow() });
    return await answer;
  }

  leave(): void {
    this.#settle()?.resolve(undefined);
    this.onEnd();
    void this.#worker.terminate();
  }

  /** Lets the Function stop in it. */
  async end(): Promise<void> {
    const ended = once(this.#worker, "exit");
    const timer = setTimeout(() => void this.#worker.terminate(), patienceMs);
    this.#send("stop");
    await ended.catch(() => {});
    clearTimeout(timer);
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message, []);
  }

  #hear(message: Exclude<FromThread, "ready">): void {
    const running = this.#settle();
    if ("result" in message) running?.resolve(message.result);
    else running?.reject("text" in message ? message.text : ofThread(message.error));
  }

  #settle(): Running | undefined {
    const running = this.#running;
    this.#running = undefined;
    this.usedMs = Date.now();
    return running;
  }
}

/** With the stack and members that it had there. */
function ofThread(described: string): Error {
  const error = new Error("an error of another thread");
  error.stack = described;
  return error;
}
