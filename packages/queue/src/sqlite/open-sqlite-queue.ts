import { mkdirSync } from "node:fs";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { type Clock, type Logger, messageOf, silentLogger } from "@spry/kube";
import { QueueFullError, QueueUnavailableError, recordChanged } from "../errors.ts";
import { defaultLimits, type Queue, type QueueLimits } from "../queue.ts";
import { Engine } from "./engine.ts";
import { type Reply, type Request, troubleId } from "./protocol.ts";
import { type Ask, SqliteQueue } from "./sqlite-queue.ts";

export interface SqliteQueueOptions {
  /** Created when missing, for its owner alone; one process at a time uses it. */
  directory: string;
  limits?: Partial<QueueLimits>;
  /** The file of the thread's program, where it is not the source next to this one. */
  workerFile?: string;
  /** For tests: time is this clock's, and the database is in the caller's thread. */
  clock?: Clock;
  log?: Logger;
}

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** How long to wait after its thread has ended, which it does only after a failure that it cannot recover from. */
const reopenMs = 1_000;

/**
 * A queue in one file of this machine.
 * @throws QueueUnavailableError when the file cannot be read or is another process's
 */
export async function openSqliteQueue(options: SqliteQueueOptions): Promise<Queue> {
  const file = path.join(options.directory, "queue.db");
  const limits = { ...defaultLimits, ...options.limits };
  const log = options.log ?? silentLogger;
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const waiting = new Map<number, Waiting>();
  const opened = Promise.withResolvers<unknown>();
  waiting.set(0, opened);
  const receive = (replies: readonly Reply[]) => {
    for (const reply of replies) {
      if (reply.id === troubleId && "error" in reply)
        log.error({ file, error: reply.error }, "the event queue has a problem");
      const one = waiting.get(reply.id);
      if (!one) continue;
      waiting.delete(reply.id);
      if ("value" in reply) one.resolve(reply.value);
      else one.reject(errorOf(reply, file));
    }
  };
  let isClosing = false;
  let isOpen = false;
  let isReopening = false;
  let reopening: NodeJS.Timeout | undefined;
  const fail = (error: unknown) => {
    if (!isClosing) log.error({ file, error: messageOf(error) }, "the event queue has stopped");
    for (const { reject } of waiting.values()) reject(unavailable(file, messageOf(error)));
    waiting.clear();
  };
  const start = () =>
    options.clock
      ? engineHere(file, limits, options.clock, receive)
      : engineInThread(file, limits, options.workerFile, receive, ended);
  // What was handed out is handed out again by the next one, and consumers are those of the file.
  const ended = (error: unknown) => {
    const wasOpen = isOpen;
    isOpen = false;
    fail(error);
    if (isClosing || !(wasOpen || isReopening)) return;
    isReopening = true;
    clearTimeout(reopening);
    reopening = setTimeout(() => {
      if (isClosing) return;
      waiting.set(0, {
        resolve: () => {
          isOpen = true;
          isReopening = false;
          log.info({ file }, "the event queue is open again");
        },
        // Its file cannot be used at present: the thread is ended, and the next one tries.
        reject: () => void thread.end(),
      });
      thread = start();
    }, reopenMs);
    reopening.unref();
  };
  let thread = start();
  let lastId = 0;
  let outgoing: Request[] = [];
  const send = (request: Request) => {
    if (outgoing.push(request) > 1) return;
    // One message to the other thread for everything that has arrived by then, from all clients.
    setImmediate(() => {
      thread.post(outgoing);
      outgoing = [];
    });
  };
  const ask: Ask = (operation) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (thread.hasEnded() || !isOpen)
      return Promise.reject(
        unavailable(file, isReopening ? "it is being reopened" : "it is closed"),
      );
    const id = ++lastId;
    waiting.set(id, { resolve, reject });
    send({ ...operation, id });
    return promise;
  };
  try {
    await opened.promise;
    isOpen = true;
  } catch (error) {
    isClosing = true;
    await thread.end();
    throw error;
  }
  const end = () => {
    isClosing = true;
    clearTimeout(reopening);
    return thread.end();
  };
  return new SqliteQueue(ask, (operation) => send({ ...operation, id: 0 }), end);
}

interface Thread {
  post(requests: Request[]): void;
  hasEnded(): boolean;
  end(): Promise<void>;
}

function engineInThread(
  file: string,
  limits: QueueLimits,
  program = path.join(import.meta.dirname, "worker.ts"),
  receive: (replies: Reply[]) => void,
  fail: (error: unknown) => void,
): Thread {
  const worker = new Worker(program, { workerData: { file, limits } });
  let ended = false;
  worker.on("message", receive);
  let why: unknown = "the queue's thread has ended";
  worker.on("error", (error) => (why = error));
  worker.on("exit", () => {
    ended = true;
    fail(why);
  });
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is a thread, not a window
    post: (requests) => worker.postMessage(requests),
    hasEnded: () => ended,
    async end() {
      await worker.terminate();
    },
  };
}

function engineHere(
  file: string,
  limits: QueueLimits,
  clock: Clock,
  receive: (replies: Reply[]) => void,
): Thread {
  let ended = false;
  let engine: Engine | undefined;
  try {
    engine = new Engine(file, limits, clock, receive);
    receive([{ id: 0, value: "open" }]);
  } catch (error) {
    receive([{ id: 0, error: messageOf(error), kind: "unavailable" }]);
  }
  return {
    post: (requests) => engine?.receive(requests),
    hasEnded: () => ended,
    end: async () => void (ended = true),
  };
}

const unavailable = (file: string, why: string) =>
  new QueueUnavailableError(`the queue ${file} cannot be used: ${why}`);

function errorOf(reply: Extract<Reply, { error: string }>, file: string): Error {
  if (reply.kind === "full") return new QueueFullError(`the queue is full: ${reply.error}`);
  if (reply.kind === "changed") return recordChanged(reply.error);
  return unavailable(file, reply.error);
}
