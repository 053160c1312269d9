import { type IncomingMessage, type RequestListener } from "node:http";
import { MemoryBudget } from "@spry/gateway";

/** A list to be converted; a webhook may take less. */
const maxBodySize = 64 * 1024 * 1024;
/** Of all bodies together: on one machine, Pods that share its network reach the port as the API server does. */
const maxBodySizes = 256 * 1024 * 1024;
/** So much of each body is received whatever others hold. */
const freeSize = 256 * 1024;

/** The API servers keep few open. */
export const webhookConnections = { total: 1_000, ofAddress: 500 };

/** Hands requests of a `node:https` server to a webhook; one that it cannot answer is cut off. */
export function answerWith(webhook: (request: Request) => Promise<Response>): RequestListener {
  const memory = new MemoryBudget(maxBodySizes);
  return (request, response) => {
    void (async () => {
      const body = await readBody(request, memory);
      if (typeof body === "number")
        return void response.writeHead(body, { connection: "close" }).end();
      const answer = await webhook(
        new Request(`https://webhook${request.url}`, {
          method: request.method ?? "POST",
          headers: { "content-type": request.headers["content-type"] ?? "" },
          ...(request.method === "POST" && { body }),
        }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
    })().catch(() => response.destroy());
  };
}

/** The body, or the status with which it is refused. */
async function readBody(
  request: IncomingMessage,
  memory: MemoryBudget,
): Promise<Buffer<ArrayBuffer> | number> {
  const chunks: Buffer[] = [];
  let size = 0;
  let taken = 0;
  const owner = String(request.socket.remotePort);
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBodySize) return 413;
      if (size > freeSize) {
        if (!memory.take(owner, size - freeSize - taken)) return 503;
        taken = size - freeSize;
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    memory.give(owner, taken);
  }
}
