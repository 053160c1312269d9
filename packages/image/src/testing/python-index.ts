/** A Python package index on this machine. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryDirectory } from "./registry.ts";
import { greeting, type Wheel, wheelName, wheelOf } from "./wheels.ts";

/** `3.12`, say; undefined where pip is missing, or is not of the Python that is `python3`. */
export function pythonOnThisMachine(): string | undefined {
  const { stdout } = spawnSync("pip", ["--version"], { encoding: "utf8" });
  const ofPip = /\(python (3\.\d+)\)/.exec(stdout ?? "")?.[1];
  const { stdout: python } = spawnSync("python3", ["--version"], { encoding: "utf8" });
  return ofPip !== undefined && python?.includes(` ${ofPip}.`) ? ofPip : undefined;
}

/** What an index has besides the wheel of `greeting`. */
interface IndexContent {
  /** `user:password`; without it the index is for all. */
  login?: string;
  /** Source distributions by their names, in version 1.0. */
  sources?: Readonly<Record<string, Buffer>>;
  wheels?: readonly Wheel[];
}

/** A package index on this machine (PEP 503), and the `pip.conf` that names it. */
export async function startPythonIndex({ login, sources = {}, wheels = [] }: IndexContent = {}) {
  const archives = new Map([
    ...[greeting, ...wheels].map((wheel) => [wheelName(wheel), wheelOf(wheel)] as const),
    ...Object.entries(sources).map(([name, source]) => [`${name}-1.0.tar.gz`, source] as const),
  ]);
  const expected = login && `Basic ${Buffer.from(login).toString("base64")}`;
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    if (expected && request.headers.authorization !== expected)
      return response.writeHead(401, { "www-authenticate": "Basic" }).end();
    const archive = archives.get(request.url?.slice(1) ?? "");
    if (archive) return response.end(archive);
    const [, project] = /^\/simple\/([\w-]+)\/$/.exec(request.url ?? "") ?? [];
    const found = [...archives.keys()].filter((file) => file.startsWith(`${project}-`));
    if (found.length === 0) return response.writeHead(404).end();
    response.setHeader("content-type", "text/html");
    const links = found.map((file) => `<a href="/${file}">${file}</a>`);
    return response.end(`<!DOCTYPE html>${links.join("\n")}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pipConfig = join(temporaryDirectory(), "pip.conf");
  const settings = [`index-url = http://user:secret-token@${address}/simple`, "find-links ="];
  writeFileSync(pipConfig, ["[global]", ...settings, ""].join("\n"));
  return { address, pipConfig, requests: () => requests };
}
