import { connect } from "node:tls";

export interface Credentials {
  port: number;
  ca: string;
  cert: string;
  key: string;
}

/** What a client puts on its connection, one after the other. */
export type Step = Buffer | { pauseMs: number } | "half-close" | "reset";

export interface Answer {
  /** Of every response on the connection; 0 for an answer that is no HTTP. */
  statuses: number[];
  text: string;
  /** Until the connection ended or was given up, in ms. */
  took: number;
}

const maxKept = 256 * 1024;

/**
 * Writes the steps to a connection of its own, whatever comes back meanwhile, and reads until the server has
 * ended it or has said nothing for `patienceMs` after the last step.
 */
export function exchange(
  { port, ca, cert, key }: Credentials,
  steps: readonly Step[],
  patienceMs = 3_000,
): Promise<Answer> {
  return new Promise((resolve) => {
    const started = performance.now();
    const socket = connect({ host: "127.0.0.1", port, ca, cert, key });
    const chunks: Buffer[] = [];
    let size = 0;
    const done = () => {
      socket.destroy();
      const text = Buffer.concat(chunks).toString("latin1");
      resolve({ statuses: statusesIn(text), text, took: performance.now() - started });
    };
    socket.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxKept) chunks.push(chunk);
    });
    // A server may cut off who does not keep to the protocol.
    socket.on("error", () => {});
    socket.once("close", done);
    socket.once("secureConnect", () => void play(socket, steps, patienceMs));
  });
}

async function play(
  socket: ReturnType<typeof connect>,
  steps: readonly Step[],
  patienceMs: number,
): Promise<void> {
  for (const step of steps) {
    if (socket.destroyed) return;
    if (step === "reset") return void socket.destroy();
    if (step === "half-close") socket.end();
    else if (Buffer.isBuffer(step)) socket.write(step);
    else await new Promise((resolve) => setTimeout(resolve, step.pauseMs));
  }
  socket.setTimeout(patienceMs, () => socket.destroy());
}

function statusesIn(text: string): number[] {
  if (text === "") return [];
  const found = [...text.matchAll(/(?:^|\n|\}|[0-9a-z ])HTTP\/1\.1 (\d{3}) /g)];
  return found.length > 0 ? found.map(([, status]) => Number(status)) : [0];
}
