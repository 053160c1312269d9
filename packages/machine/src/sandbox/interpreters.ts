import { execFile, type ExecFileException } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Logger, messageOf } from "@spry/kube";
import { fetchPython } from "./fetch-python.ts";
import { interpreterFiles, settingsFiles } from "./interpreter-files.ts";
import { findPython } from "./python-installations.ts";
import { linkPython, MissingInterpreterError } from "./python-interpreter.ts";

/** The image label that names the interpreters, the program's first: `node@24`, `node@24,python@3.12`. */
export const interpreterLabel = "io.spry.interpreter";

/** The interpreters that a label's value names. */
export function interpretersIn(label: string | undefined): string[] {
  return (label ?? "").split(",").flatMap((name) => name.trim() || []);
}

const installation = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
const installTimeoutMs = 300_000;
/** A person waits, and a registry that can be reached answers this within moments. */
const answerTimeoutMs = 15_000;

export interface InterpretersOptions {
  dataDir: string;
  /** npm's `npm-cli.js`; without it only the major version of the running Node.js is available. */
  npmCli?: string | undefined;
  /** An npmrc with this machine's way to its package registry; read by npm each time, if it is there. */
  npmConfig?: string | undefined;
  /** The same for pip. */
  pipConfig?: string | undefined;
  /** How long npm's registry may take to answer at all. */
  answerTimeoutMs?: number;
  log: Logger;
}

/**
 * Directories with an interpreter each: `<dataDir>/interpreters/node-24/bin/{node,npm,npx}`. The
 * major that runs this program is linked, others are fetched once as npm packages. Python is linked
 * (`python-3.12/bin/{python3,python,pip}`), from where this machine has it or it has been fetched to.
 */
export class Interpreters {
  /** The one that runs this program. */
  static readonly own = `node@${process.versions.node.split(".")[0]}`;

  readonly #options: InterpretersOptions;
  readonly #under = new Map<string, Promise<string>>();
  readonly #ready = new Map<string, string>();
  readonly #files = new Map<string, Promise<string[]>>();

  constructor(options: InterpretersOptions) {
    this.#options = options;
  }

  /** The `bin` directory if it has been made ready by `ensure`. */
  binOf(name: string): string | undefined {
    return this.#ready.get(name);
  }

  /** Everything on this machine that an interpreter is made of, and what npm and pip need; it has been made ready. */
  async filesOf(name: string): Promise<string[]> {
    const bin = this.#ready.get(name);
    if (bin === undefined) return [];
    const files = this.#files.get(name) ?? interpreterFiles(name, bin);
    this.#files.set(name, files);
    const { npmCli, npmConfig, pipConfig } = this.#options;
    const npm = npmCli === undefined ? [] : [path.dirname(path.dirname(npmCli))];
    return [...(await files), ...npm, ...settingsFiles([npmConfig, pipConfig])];
  }

  /** Makes the interpreter ready; a second caller waits for the work of the first. */
  ensure(name: string, progress: (message: string) => void): Promise<string> {
    const ready = this.#ready.get(name);
    if (ready) return Promise.resolve(ready);
    const running = this.#under.get(name) ?? this.#provide(name, progress);
    this.#under.set(name, running);
    return running.finally(() => this.#under.delete(name));
  }

  async #provide(name: string, progress: (message: string) => void): Promise<string> {
    const [, major] = /^node@(\d{1,3})$/.exec(name) ?? [];
    const [, python] = /^python@(3\.\d{1,2})$/.exec(name) ?? [];
    if (major) return this.#provideNode(name, major, progress);
    if (python) return this.#providePython(name, python, progress);
    throw new Error(
      `interpreter ${name} is not known: expected node@<major version> or python@3.<minor version>`,
    );
  }

  /** Written again by each platform: the location of Python, and its pip, may have changed. */
  async #providePython(
    name: string,
    version: string,
    progress: (message: string) => void,
  ): Promise<string> {
    const dir = path.join(this.#options.dataDir, "interpreters", `python-${version}`);
    const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
    try {
      const lack = (await findPython(version))
        ? undefined
        : ((await fetchPython(version, progress)) ??
          "the downloaded interpreter does not run here");
      await linkPython(version, partial, { pipConfig: this.#options.pipConfig, lack });
      await rm(dir, { recursive: true, force: true });
      await rename(partial, dir);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    const bin = path.join(dir, "bin");
    this.#ready.set(name, bin);
    return bin;
  }

  async #provideNode(
    name: string,
    major: string,
    progress: (message: string) => void,
  ): Promise<string> {
    const isOwn = name === Interpreters.own;
    const dir = path.join(this.#options.dataDir, "interpreters", `node-${major}`);
    // A new version of the running Node.js moves; links are cheap to make again.
    if (isOwn) await rm(dir, { recursive: true, force: true });
    if (!existsSync(path.join(dir, "bin", "node"))) {
      const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
      try {
        await mkdir(path.join(partial, "bin"), { recursive: true });
        if (isOwn) await symlink(process.execPath, path.join(partial, "bin", "node"));
        else await this.#install(major, partial, progress);
        await this.#linkNpm(path.join(partial, "bin"));
        await rename(partial, dir);
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    }
    const bin = path.join(dir, "bin");
    this.#ready.set(name, bin);
    return bin;
  }

  /** The npm packages `node-<platform>-<arch>` hold nothing but the official binary. */
  async #install(major: string, dir: string, progress: (message: string) => void): Promise<void> {
    const { npmCli, log } = this.#options;
    const system = process.platform === "win32" ? "win" : process.platform;
    const name = `node-${system}-${process.arch}`;
    if (!npmCli)
      throw new MissingInterpreterError(
        `Node.js ${major} is not on this machine, and npm, which would install it, was not found`,
      );
    progress(`Installing Node.js ${major} (npm package ${name}@${major})`);
    log.info({ package: `${name}@${major}` }, "installing interpreter");
    // By itself npm tries for minutes: whether its registry answers is asked first.
    const answerMs = this.#options.answerTimeoutMs ?? answerTimeoutMs;
    await this.#npm(["view", `${name}@${major}`, "version", "--fetch-retries=0"], dir, answerMs)
      .then(() => this.#npm([...installation, "--prefix", dir, `${name}@${major}`], dir))
      .catch((error: unknown) => {
        throw new MissingInterpreterError(
          `Node.js ${major} is not on this machine, and installing it with npm failed: ${messageOf(error)}; ` +
            "check that the npm registry can be reached, or choose a runtime whose version is here; it is tried again",
        );
      });
    const target = path.join("..", "node_modules", name, "bin", "node");
    await readdir(path.join(dir, "node_modules", name, "bin"));
    await symlink(target, path.join(dir, "bin", "node"));
  }

  /** Rejects with the last lines that npm has written. */
  #npm(args: string[], cwd: string, timeout = installTimeoutMs): Promise<void> {
    const { npmCli = "", npmConfig } = this.#options;
    // Errors are reported, also by a platform that `npm --silent` has started.
    const settings = ["--loglevel=error", ...(npmConfig ? ["--globalconfig", npmConfig] : [])];
    const options = { cwd, timeout, maxBuffer: 1024 * 1024 };
    return new Promise((resolve, reject) => {
      const done = (error: ExecFileException | null, _stdout: string, stderr: string) => {
        if (!error) return resolve();
        const lines = stderr.trim().split("\n").slice(-5).join("\n");
        const silence = error.killed
          ? `its registry has not answered within ${timeout / 1000} s`
          : "";
        reject(new Error(silence || lines || error.message));
      };
      execFile(process.execPath, [npmCli, ...args, ...settings], options, done);
    });
  }

  /** npm with this machine's settings as its global ones: the Pod's environment knows nothing of them. */
  #program(file: string): string {
    const { npmConfig } = this.#options;
    const setting = npmConfig
      ? `process.env.npm_config_globalconfig ??= ${JSON.stringify(npmConfig)};\n`
      : "";
    return `#!/usr/bin/env node\n${setting}require(${JSON.stringify(file)});\n`;
  }

  async #linkNpm(bin: string): Promise<void> {
    const { npmCli } = this.#options;
    if (!npmCli) return;
    const npxCli = path.join(path.dirname(npmCli), "npx-cli.js");
    await writeFile(path.join(bin, "npm"), this.#program(npmCli), { mode: 0o755 });
    await writeFile(path.join(bin, "npx"), this.#program(npxCli), { mode: 0o755 });
  }
}
