/** This machine's way to its npm registry, for builds in a cluster: they know neither its settings nor its certificates. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { type AddressInfo } from "node:net";
import { rootCertificates } from "node:tls";
import { promisify } from "node:util";

export interface PackageMirror {
  /** Of the registry, as Pods reach it. */
  url: string;
  close(): void;
}

/** Passes on what is asked at this address; tarballs' addresses in the answers become its own. */
export async function startPackageMirror(host: string): Promise<PackageMirror> {
  const { stdout } = await promisify(execFile)("npm", ["config", "list", "--json"]);
  const settings = JSON.parse(stdout) as { registry: string; cafile?: string | null };
  const upstream = new URL(settings.registry);
  const { cafile } = settings;
  const own = cafile && existsSync(cafile) ? [readFileSync(cafile, "utf8")] : [];
  const ca = [...rootCertificates, ...own];
  const get = upstream.protocol === "https:" ? httpsGet : httpGet;
  const server = createServer((request, response) => {
    const url = new URL(`.${request.url ?? "/"}`, upstream);
    const accept = request.headers.accept ?? "*/*";
    const asked = get(url, { ca, headers: { accept } }, (answer) => {
      void passOn(answer, response, upstream, `http://${request.headers.host}/`);
    });
    asked.on("error", (error) => response.writeHead(502).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function passOn(
  answer: IncomingMessage,
  response: ServerResponse,
  upstream: URL,
  here: string,
): Promise<void> {
  const type = answer.headers["content-type"] ?? "";
  response.writeHead(answer.statusCode ?? 502, { "content-type": type });
  if (!type.includes("json")) return void answer.pipe(response);
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  response.end(Buffer.concat(chunks).toString().replaceAll(upstream.href, here));
}
