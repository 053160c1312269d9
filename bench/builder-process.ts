/** The builder's program as build Jobs run it, with a registry, and a way to that which counts what is sent. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  assembleImage,
  builderEntry,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
  stepScript,
} from "@spry/image";
import { buildSync } from "esbuild";
import { type PackageRegistry } from "./package-registry.ts";

export const baseBytes = 20 * 1024 * 1024;

export class Builder {
  readonly dir: string;
  readonly host: string;
  readonly countingHost: string;
  readonly sent: () => number;
  readonly close: () => Promise<void>;
  readonly #program: string;
  #number = 0;

  private constructor(
    dir: string,
    port: number,
    counter: { host: string; sent: () => number },
    close: () => Promise<void>,
  ) {
    this.dir = dir;
    this.host = `127.0.0.1:${port}`;
    this.countingHost = counter.host;
    this.sent = counter.sent;
    this.close = close;
    this.#program = path.join(dir, "builder.sh");
    writeFiles(dir, { "builder.sh": stepScript });
    buildSync({
      entryPoints: [builderEntry],
      outfile: path.join(dir, "builder.cjs"),
      bundle: true,
      platform: "node",
      target: "node22",
      format: "cjs",
    });
  }

  static async start(): Promise<Builder> {
    const dir = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
    const registry = createRegistry({ dir: path.join(dir, "registry") });
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    const counter = await startCounter(server.port);
    const builder = new Builder(dir, server.port, counter, async () => {
      counter.close();
      await server.close();
      await registry.close();
      rmSync(dir, { recursive: true, force: true });
    });
    await pushBase(builder.host);
    return builder;
  }

  /**
   * Builds one image, with packages in three processes one after the other. Returns milliseconds from the start of the first
   * to the end of the last.
   */
  async build(
    name: string,
    source: Record<string, string>,
    options: { host?: string; packages?: PackageRegistry; cache?: string; layers?: string } = {},
  ): Promise<number> {
    const { host = this.host, packages, cache, layers = "layers" } = options;
    const directory = path.join(this.dir, `source-${++this.#number}`);
    const inside = (folder: string) => path.join(directory, "workspace", folder);
    writeFiles(inside("src"), source);
    for (const folder of ["build", "handover"]) mkdirSync(inside(folder));
    if (packages)
      writeFiles(inside("registry-config"), { ".npmrc": `registry=${packages.url}/\n` });
    const flags = {
      source: inside("src"),
      runtime: "nodejs24",
      base: `${host}/spry/nodejs24:1`,
      destination: `${host}/default-${name}:1`,
      "dependency-cache": `${host}/${layers}`,
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const env = {
      SPRY_ROOT: directory,
      SPRY_TERMINATION_LOG: inside("end"),
      ...(cache === undefined ? {} : { npm_config_cache: cache }),
    };
    const begin = performance.now();
    for (const step of packages ? ["fetch", "scripts", "push"] : ["push"])
      await finish("sh", [this.#program, ...args, "--step", step], env, directory);
    const time = performance.now() - begin;
    rmSync(directory, { recursive: true, force: true });
    return time;
  }
}

/** A base of some size, so that it would show if it were sent. */
async function pushBase(host: string): Promise<void> {
  const content = Buffer.alloc(baseBytes, "base image ");
  for (let at = 0; at < content.length; at += 64)
    content.writeUInt32LE((at * 2654435761) >>> 0, at);
  const layers = [await createLayer([{ path: "usr/src/app/server.cjs", content }])];
  const image = assembleImage({ layers });
  await pushImage(new RegistryClient(), image, parseImageName(`${host}/spry/nodejs24:1`));
}

/** Runs a program to its end, and throws if that is none with 0. */
export async function finish(
  file: string,
  args: string[],
  env: Record<string, string>,
  cwd: string,
): Promise<void> {
  const { PATH } = process.env;
  const child = spawn(file, args, { cwd, env: { PATH, HOME: cwd, ...env }, stdio: "pipe" });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${path.basename(file)} ended with ${code}: ${output}`);
}

export function writeFiles(directory: string, files: Record<string, string>): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(directory, name), text);
}

/** Another way to a port, which counts what is sent there. */
async function startCounter(
  port: number,
): Promise<{ host: string; sent: () => number; close: () => void }> {
  let sent = 0;
  const server = createServer((from) => {
    const to = connect(port, "127.0.0.1");
    from.on("data", (chunk) => (sent += chunk.length));
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: own } = server.address() as AddressInfo;
  return { host: `127.0.0.1:${own}`, sent: () => sent, close: () => void server.close() };
}
