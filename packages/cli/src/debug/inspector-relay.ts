/** Between Node.js' inspector and a debugger: both read the paths that they know. */
import http from "node:http";
import { type Duplex } from "node:stream";
import { pathToFileURL } from "node:url";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import { functionDirectory } from "./directory-in-pod.ts";
import { listening, type Relay } from "./relay.ts";

const maxPageBytes = 1024 * 1024;
/** A script's source map can be large. */
const maxPayload = 256 * 1024 * 1024;

/**
 * Relays `localPort` of 127.0.0.1 to the inspector at `inspectorPort`. The debugger reads `functionDirectory` where the inspector has
 * `directory`. Fails with EADDRINUSE where the port is taken.
 */
export async function relayInspector(
  localPort: number,
  { inspectorPort, directory }: { inspectorPort: number; directory: string },
): Promise<Relay> {
  const origin = { host: "127.0.0.1", port: inspectorPort };
  const sockets = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  const server = http.createServer((request, response) => {
    const { method, url: path, headers } = request;
    const asked = http.request({ ...origin, method, path, headers }, (answer) => {
      const chunks: Buffer[] = [];
      let size = 0;
      answer.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxPageBytes) asked.destroy(new Error("the answer is too large"));
        else chunks.push(chunk);
      });
      answer.on("end", () => {
        const text = forDebugger(Buffer.concat(chunks).toString(), directory);
        const { "content-length": _length, ...others } = answer.headers;
        response.writeHead(answer.statusCode ?? 502, others).end(text);
      });
    });
    asked.on("error", () => response.destroy());
    asked.end();
  });
  server.on("upgrade", (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.handleUpgrade(request, socket, head, (near) => {
      const far = new WebSocket(`ws://127.0.0.1:${inspectorPort}${request.url ?? ""}`, {
        maxPayload,
        perMessageDeflate: false,
      });
      join(near, far, directory);
    });
  });
  const port = await listening(server, localPort);
  return {
    port,
    close() {
      server.close();
      server.closeAllConnections();
      for (const each of sockets.clients) each.terminate();
    },
  };
}

function join(near: WebSocket, far: WebSocket, directory: string): void {
  const early: string[] = [];
  near.on("message", (data: RawData) => {
    const text = forInspector((data as Buffer).toString(), directory);
    if (far.readyState === WebSocket.CONNECTING) early.push(text);
    else far.send(text, () => {});
  });
  far.on("open", () => {
    for (const text of early) far.send(text);
  });
  far.on("message", (data: RawData) => {
    near.send(forDebugger((data as Buffer).toString(), directory), () => {});
  });
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.on("error", () => other.terminate());
    one.on("close", () => other.close());
  }
}

/** As a path, and as part of a URL. */
const writtenForms = (directory: string): Set<string> =>
  new Set([pathToFileURL(directory).pathname, directory]);

function forDebugger(text: string, directory: string): string {
  let result = text;
  for (const form of writtenForms(directory)) result = result.replaceAll(form, functionDirectory);
  return result;
}

function forInspector(text: string, directory: string): string {
  const [inUrl = directory] = writtenForms(directory);
  if (!text.includes('"urlRegex"'))
    return text.replaceAll(inText, (_all, scheme: string) =>
      scheme === "" ? directory : scheme + inUrl,
    );
  const message = JSON.parse(text) as { params?: { urlRegex?: string } };
  const { urlRegex } = message.params ?? {};
  if (message.params && typeof urlRegex === "string")
    message.params.urlRegex = urlRegex.replaceAll(
      inPattern,
      () => `(?:${[...writtenForms(directory)].map(asPattern).join("|")})`,
    );
  return JSON.stringify(message);
}

const inText = new RegExp(String.raw`(file://|)${functionDirectory}`, "g");

const asPattern = (text: string): string =>
  text.replaceAll(/[/\\^$*+?.()|[\]{}-]/g, String.raw`\$&`);

/** How debuggers write the directory in a pattern: with escapes, and a class of both cases for a letter where case does not matter. */
const inPattern = new RegExp(
  Array.from(functionDirectory, (char) => {
    const upper = char.toUpperCase();
    return char === "/"
      ? String.raw`\\?/`
      : String.raw`(?:${char}|\[${char}${upper}\]|\[${upper}${char}\])`;
  }).join(""),
  "g",
);
