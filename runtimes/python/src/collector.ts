import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export const traceId = "0af7651916cd43dd8448eb211c80319c";
export const caller = "b7ad6b7169203331";

export interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  status: { code?: number };
  attributes: { key: string; value: Record<string, unknown> }[];
  events?: { name: string }[];
}

/** An OTLP collector that remembers. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      for (const { scopeSpans } of JSON.parse(text).resourceSpans)
        for (const each of scopeSpans) spans.push(...each.spans);
      response.end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}/v1/traces`, spans };
}
