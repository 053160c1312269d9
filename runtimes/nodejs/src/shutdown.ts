import { type Socket } from "node:net";
import { backgroundWork } from "./background-work.ts";
import { type FunctionServer } from "./server.ts";

let onStop = () => {};

/** Sets what is done when a signal ends the process. */
export function atSignal(act: () => void): void {
  onStop = act;
}

const signals = { SIGTERM: 15, SIGINT: 2 } as const;
const names = Object.keys(signals) as Signal[];

type Signal = keyof typeof signals;

function endAtOnce(signal: NodeJS.Signals): void {
  onStop();
  process.exit(128 + signals[signal as Signal]);
}

/**
 * Until something else is said about signals, they end the process. That is what they do anyway, but not with the first
 * process of a container: what it has no handler for it does not hear (pid_namespaces(7)), and a Pod that is deleted while
 * it starts would stay for all of its grace period.
 */
export function endOnSignal(): void {
  if (process.pid !== 1) return;
  for (const signal of names) process.on(signal, endAtOnce);
}

/** What says itself what signals do begins with this. */
export function takeSignals(listener: NodeJS.SignalsListener): void {
  // In this order: without any listener, a signal to the first process of a container would be lost.
  for (const signal of names) process.on(signal, listener).off(signal, endAtOnce);
}

/** For the rest of a request's head, once no new requests are to come. */
const headMs = 5000;

/** Node.js knows which answer is under way on a connection; others that end servers ask it in this way, too. */
function isAnswered(socket: Socket & { _httpMessage?: unknown }): boolean {
  return Boolean(socket._httpMessage);
}

/**
 * Ends the process on SIGTERM or SIGINT without losing a request: first it keeps responding, with `connection:
 * close`, while the senders of requests learn that it is ending; then it stops accepting and lets the requests under
 * way finish. A second SIGINT ends it at once: a user at a terminal has waited long enough. A second SIGTERM does
 * not: a kubelet that restarts sends one.
 */
export function shutDownOnSignal(
  server: FunctionServer,
  delayMs: number,
  closeWebSockets: (() => void) | undefined,
): void {
  let stopping = false;
  const stop = (signal?: NodeJS.Signals) => {
    onStop();
    if (stopping) return signal === "SIGINT" ? process.exit(1) : undefined;
    stopping = true;
    server.prependListener("request", (_request, response) => {
      response.setHeader("connection", "close");
    });
    // Idle connections stay open until then: a request may be on its way on any of them.
    // "Immediate" is after those that have connected by now were accepted: closing would reset them.
    setTimeout(() => setImmediate(stopListening), delayMs);
  };
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  const stopListening = () => {
    closeWebSockets?.();
    server.close(() => void backgroundWork().then(() => process.exit(exitCode)));
    // Those with a request under way become idle one by one.
    setInterval(() => server.closeIdleConnections(), 50);
    // Node.js no longer times out connections that have begun a request and do not complete it.
    setTimeout(() => open.forEach((socket) => isAnswered(socket) || socket.destroy()), headMs);
  };
  takeSignals(stop);
  endNow = () => {
    onStop();
    exitCode = 1;
    if (stopping) return;
    stopping = true;
    setImmediate(stopListening);
  };
}

let exitCode = 0;
let endNow = (): void => process.exit(1);

/** Ends the process with 1 when the requests under way have been answered; it accepts no others. */
export function endAfterRequests(): void {
  endNow();
}
