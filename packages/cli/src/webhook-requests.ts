import { type RequestListener } from "node:http";

/** A list to be converted; a webhook may take less. */
const maxBodySize = 64 * 1024 * 1024;

/** Hands requests of a `node:https` server to a webhook; one that it cannot answer is cut off. */
export function answerWith(webhook: (request: Request) => Promise<Response>): RequestListener {
  return (request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of request as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > maxBodySize) return void response.writeHead(413).end();
        chunks.push(chunk);
      }
      const answer = await webhook(
        new Request(`https://webhook${request.url}`, {
          method: request.method ?? "POST",
          headers: { "content-type": request.headers["content-type"] ?? "" },
          ...(request.method === "POST" && { body: Buffer.concat(chunks) }),
        }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
    })().catch(() => response.destroy());
  };
}
