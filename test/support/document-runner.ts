/**
 * Does what a document says, block by block, in one shell's working directory and environment, with the installed command on the
 * PATH and an empty home. Ports are others than the document's, so that it runs next to other tests.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { freePort, hasEnded } from "../kit/index.ts";
import { type DocumentBlock } from "./document-blocks.ts";
import { cleanEnvironment, pause } from "./platform.ts";

const blockMs = 300_000;

export class DocumentRunner {
  readonly #home: string;
  readonly #ports: ReadonlyMap<string, number>;
  readonly #env: NodeJS.ProcessEnv;
  readonly #background: ChildProcess[] = [];
  output = "";

  private constructor(home: string, ports: ReadonlyMap<string, number>, env: NodeJS.ProcessEnv) {
    this.#home = home;
    this.#ports = ports;
    this.#env = env;
  }

  /** `prefix` is where npm installs global packages, `node` the directory of the Node.js to use. */
  static async create(home: string, prefix: string, node: string): Promise<DocumentRunner> {
    const documented = ["8080", "6443", "5000", "8443", "3000", "8082"];
    const ports = new Map<string, number>();
    for (const port of documented) ports.set(port, await freePort());
    const shims = path.join(home, "shims");
    mkdirSync(shims, { recursive: true });
    mkdirSync(path.join(home, "work"), { recursive: true });
    writeShim(path.join(shims, "spry"), path.join(prefix, "bin/spry"), ports);
    const PATH = [shims, path.join(prefix, "bin"), node, process.env["PATH"]].join(path.delimiter);
    const { XDG_CACHE_HOME: _cache, NODE_COMPILE_CACHE: _compiled, ...own } = cleanEnvironment();
    // What the runner of the tests has set for npm is not the reader's.
    const clean = Object.fromEntries(
      Object.entries(own).filter(
        ([name]) => !/^npm_(?:config_(?!registry)|package|lifecycle)/.test(name),
      ),
    );
    // How this machine reaches its package registry is not the document's matter.
    const certificates = process.env["SSL_CERT_FILE"];
    const env = {
      ...clean,
      PATH,
      HOME: home,
      npm_config_prefix: prefix,
      ...(certificates !== undefined && { npm_config_cafile: certificates }),
    };
    return new DocumentRunner(home, ports, env);
  }

  get work(): string {
    return path.join(this.#home, "work");
  }

  /** Returns what the block printed; throws when a command of it fails. */
  async run(block: DocumentBlock): Promise<string> {
    const text = this.#here(block.text);
    if (block.file) {
      const file = path.resolve(this.#directory(), block.file);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, text);
      return "";
    }
    if (block.language === "text") return this.#compare(text);
    if (block.language !== "sh") return "";
    if (block.isBackground) return this.#start(text);
    this.output = await this.#finish(text);
    return this.output;
  }

  async end(): Promise<void> {
    for (const child of this.#background.reverse()) {
      if (hasEnded(child) || child.pid === undefined) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      process.kill(-child.pid, "SIGINT");
      await ended;
    }
  }

  #here(text: string): string {
    return text.replaceAll(/(?<=localhost:|127\.0\.0\.1:|--port )(\d{4})\b/g, (port) =>
      String(this.#ports.get(port) ?? port),
    );
  }

  /** Every line is in the output; `…` stands for anything. */
  #compare(expected: string): string {
    for (const line of expected.split("\n").filter((each) => each.trim() !== "")) {
      const pattern = line
        .trim()
        .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
        .replaceAll(/\s+/g, String.raw`\s+`)
        .replaceAll("…", ".*");
      if (!new RegExp(pattern).test(this.output))
        throw new Error(`expected the line\n  ${line}\nin\n${this.output}`);
    }
    return "";
  }

  #directory(): string {
    const file = path.join(this.#home, "directory");
    return existsSync(file) ? readFileSync(file, "utf8").trim() : this.work;
  }

  async #finish(text: string): Promise<string> {
    const [state, directory] = ["environment", "directory"].map((name) =>
      path.join(this.#home, name),
    );
    const script = `set -e
cd '${this.#directory()}'
if [ -f '${state}' ]; then . '${state}'; fi
${text}
pwd > '${directory}'
export -p > '${state}'`;
    const child = spawn("bash", ["-c", script], {
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: blockMs,
    });
    const output = collect(child);
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`${text}ended with ${code}:\n${output()}`);
    return output();
  }

  /** Resolves when it says that it is ready. */
  async #start(text: string): Promise<string> {
    const child = spawn("bash", ["-c", `cd '${this.#directory()}'; exec ${text.trim()}`], {
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#background.push(child);
    const output = collect(child);
    const deadline = Date.now() + blockMs;
    while (!/\bready after\b/i.test(output())) {
      if (hasEnded(child) || Date.now() > deadline)
        throw new Error(`${text}is not ready:\n${output()}`);
      await pause(20);
    }
    this.output = output();
    return this.output;
  }
}

function collect(child: ChildProcess): () => string {
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return () => output;
}

/** The command itself, with other ports where it would take its usual ones. */
function writeShim(file: string, command: string, ports: ReadonlyMap<string, number>): void {
  const port = (documented: string) => ports.get(documented);
  const sandbox = process.env["SPRY_TEST_SANDBOX"];
  const up = `--gateway-port ${port("8080")} --api-port ${port("6443")} --registry-port ${port("5000")} --https-port ${port("8443")} --publisher-port ${port("8082")}`;
  writeFileSync(
    file,
    `#!/bin/sh
case "$1" in
up) shift; exec '${command}' up ${up} ${sandbox ? `--sandbox ${sandbox}` : ""} "$@" ;;
dev) shift; exec '${command}' dev --port ${port("3000")} "$@" ;;
*) exec '${command}' "$@" ;;
esac
`,
  );
  chmodSync(file, 0o755);
}
