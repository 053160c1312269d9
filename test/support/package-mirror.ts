/** This machine's ways to its package registries, for builds in a cluster: they know neither its settings nor its certificates. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { type AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { rootCertificates } from "node:tls";
import { promisify } from "node:util";

export interface PackageMirror {
  /** Of the registry, as Pods reach it. */
  url: string;
  close(): void;
}

interface Upstream {
  url: URL;
  /** A private authority of its server, a file. */
  cafile?: string | null | undefined;
}

/** For npm. */
export async function startPackageMirror(host: string): Promise<PackageMirror> {
  const { stdout } = await promisify(execFile)("npm", ["config", "list", "--json"]);
  const { registry, cafile } = JSON.parse(stdout) as { registry: string; cafile?: string | null };
  return serve(host, { url: new URL(registry), cafile });
}

/** For pip; undefined where there is none. */
export async function startPythonMirror(host: string): Promise<PackageMirror | undefined> {
  const script = `import json
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
settings = Configuration(isolated=False)
settings.load()
found = {key.split(".")[-1]: value for key, value in settings.items()}
print(json.dumps([found.get("index-url", PyPI.simple_url), found.get("cert")]))`;
  const { stdout } = await promisify(execFile)("python3", ["-c", script]).catch(() => ({
    stdout: "",
  }));
  if (!stdout) return undefined;
  const [index, cafile] = JSON.parse(stdout) as [string, string | null];
  return serve(host, { url: new URL(`${index.replace(/\/$/, "")}/`), cafile });
}

/** Passes on what is asked at this address; other addresses in its answers become its own, as `/@/<host>/…`. */
async function serve(host: string, { url: upstream, cafile }: Upstream): Promise<PackageMirror> {
  const own = cafile && existsSync(cafile) ? [readFileSync(cafile, "utf8")] : [];
  const ca = [...rootCertificates, ...own];
  /** Servers that an answer has named, and no others. */
  const known = new Map<string, string>();
  const server = createServer((request, response) => {
    const [, elsewhere = "", rest = ""] = /^\/@\/([^/]+)\/(.*)$/.exec(request.url ?? "") ?? [];
    const origin = known.get(elsewhere);
    const url = origin ? new URL(rest, origin) : new URL(`.${request.url ?? "/"}`, upstream);
    const accept = request.headers.accept ?? "*/*";
    const get = url.protocol === "https:" ? httpsGet : httpGet;
    // Half an answer is none: who asked sees it break off, and asks again.
    const fail = (error: Error) =>
      response.headersSent ? response.destroy() : response.writeHead(502).end(String(error));
    const asked = get(url, { ca, headers: { accept } }, (answer) => {
      const here = `http://${request.headers.host}/`;
      const rewritten = (text: string) =>
        text
          .replaceAll(upstream.href, here)
          .replaceAll(/(https?:\/\/)([^/"'\s<>]+)\//g, (all, scheme: string, name: string) => {
            if (all === here) return all;
            known.set(name, `${scheme}${name}/`);
            return `${here}@/${name}/`;
          });
      passOn(answer, response, rewritten).catch(fail);
    });
    asked.on("error", fail);
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
  rewritten: (text: string) => string,
): Promise<void> {
  const type = answer.headers["content-type"] ?? "";
  const status = answer.statusCode ?? 502;
  if (!/json|html/.test(type)) {
    response.writeHead(status, { "content-type": type });
    return pipeline(answer, response);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  response.writeHead(status, { "content-type": type });
  response.end(rewritten(Buffer.concat(chunks).toString()));
}
