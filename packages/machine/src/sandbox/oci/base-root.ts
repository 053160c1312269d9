import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import {
  chmod,
  chown,
  copyFile,
  link,
  mkdir,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { type Interpreters } from "../interpreters.ts";

/** A new layout makes a new base. */
const layout = "1";
const lddTimeoutMs = 10_000;

/** What scripts of packages and exec probes count on; whatever of it the host has. */
const tools = (
  "sh env cat chmod cp cut echo false grep head kill ln ls mkdir mv pwd rm rmdir sed sleep sort " +
  "tail test touch tr true uname wc"
).split(" ");
const toolDirs = ["/usr/bin", "/bin"];
/** Older C libraries load these when the first name is looked up. */
const lookupLibraries = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

const passwd = `root:x:0:0:root:/root:/bin/sh
node:x:1000:1000::/home/node:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
`;
const group = "root:x:0:\nnode:x:1000:\nnogroup:x:65534:\n";

/** Where npm is in a container; bound there from the host. */
export const npmMountPath = "/usr/local/lib/node_modules/npm";
/** npm's global configuration, as it finds it from `/usr/local/bin/node`. */
export const npmrcMountPath = "/usr/local/etc/npmrc";

/**
 * Root file systems for images that bring none: the interpreter from the host at
 * `/usr/local/bin/node`, the shared libraries that it needs, a shell, certificates and accounts.
 * Made once per interpreter under `<dir>/<interpreter>-<hash>/`, and shared read-only by all containers.
 */
export class BaseRoots {
  readonly #dir: string;
  readonly #interpreters: Interpreters;
  readonly #ready = new Map<string, string>();
  readonly #under = new Map<string, Promise<string>>();

  constructor(dir: string, interpreters: Interpreters) {
    this.#dir = dir;
    this.#interpreters = interpreters;
  }

  /** The base's directory if `ensure` has made it. */
  of(interpreter: string): string | undefined {
    return this.#ready.get(interpreter);
  }

  ensure(interpreter: string, progress: (message: string) => void): Promise<string> {
    const ready = this.#ready.get(interpreter);
    if (ready !== undefined) return Promise.resolve(ready);
    const running = this.#under.get(interpreter) ?? this.#provide(interpreter, progress);
    this.#under.set(interpreter, running);
    return running.finally(() => this.#under.delete(interpreter));
  }

  /** Removes bases of earlier versions; to be called only while no container runs. */
  async prune(): Promise<void> {
    if (!existsSync(this.#dir)) return;
    const kept = new Set([...this.#ready.values()].map((dir) => path.basename(dir)));
    for (const name of readdirSync(this.#dir))
      if (!kept.has(name)) await rm(path.join(this.#dir, name), { recursive: true, force: true });
  }

  async #provide(interpreter: string, progress: (message: string) => void): Promise<string> {
    const bin = await this.#interpreters.ensure(interpreter, progress);
    const program = realpathSync(path.join(bin, "node"));
    const { size, mtimeMs } = statSync(program);
    const hash = createHash("sha256")
      .update([layout, program, size, mtimeMs].join())
      .digest("hex")
      .slice(0, 12);
    const dir = path.join(this.#dir, `${interpreter.replace(/[^\w.]/g, "-")}-${hash}`);
    if (!existsSync(dir)) {
      const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
      try {
        await assemble(partial, program);
        await rename(partial, dir);
      } catch (cause) {
        throw new Error(`assembling a root file system around ${program}`, { cause });
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    }
    this.#ready.set(interpreter, dir);
    return dir;
  }
}

async function assemble(dir: string, program: string): Promise<void> {
  const root = new Tree(dir);
  for (const name of ["/dev", "/proc", "/sys", "/root", "/var", npmMountPath])
    await root.directory(name);
  for (const name of ["/tmp", "/var/tmp"]) await chmod(await root.directory(name), 0o1777);
  await chown(await root.directory("/home/node"), 1000, 1000).catch(() => {});
  await root.file("/etc/passwd", passwd);
  await root.file("/etc/group", group);
  await root.file("/etc/nsswitch.conf", "hosts: files dns\n");
  await root.file(npmrcMountPath, "");
  const certificates = "/etc/ssl/certs/ca-certificates.crt";
  if (existsSync(certificates)) await root.copy(certificates, certificates);
  await root.program(program, "/usr/local/bin/node");
  await root.link("/usr/local/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js");
  await root.link("/usr/local/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js");
  for (const tool of tools) {
    const file = toolDirs.map((each) => path.join(each, tool)).find(existsSync);
    if (file !== undefined) await root.program(realpathSync(file), `/bin/${tool}`);
  }
  await root.directory("/usr/bin");
  await root.link("/usr/bin/env", "/bin/env");
}

/** A root file system in the making: everybody may read it, whatever this program's umask is. */
class Tree {
  readonly #dir: string;
  readonly #copied = new Set<string>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  async directory(name: string): Promise<string> {
    let at = this.#dir;
    for (const part of ["", ...name.split("/").filter(Boolean)]) {
      at = path.join(at, part);
      if (existsSync(at)) continue;
      await mkdir(at, { recursive: true });
      await chmod(at, 0o755);
    }
    return at;
  }

  async file(name: string, content: string): Promise<void> {
    const file = path.join(await this.directory(path.dirname(name)), path.basename(name));
    await writeFile(file, content);
    await chmod(file, 0o644);
  }

  async link(name: string, target: string): Promise<void> {
    await symlink(target, path.join(await this.directory(path.dirname(name)), path.basename(name)));
  }

  async copy(source: string, name: string): Promise<void> {
    if (this.#copied.has(name)) return;
    this.#copied.add(name);
    const file = path.join(await this.directory(path.dirname(name)), path.basename(name));
    const real = realpathSync(source);
    // The same file as the host's: its pages are in memory once, for the platform and all containers.
    await link(real, file).catch(() => copyFile(real, file));
  }

  /** A program with every shared library that it asks for, at the paths it asks for them. */
  async program(source: string, name: string): Promise<void> {
    await this.copy(source, name);
    const libraries = await librariesOf(source);
    for (const library of libraries) await this.copy(library, library);
    const libc = libraries.find((library) => path.basename(library) === "libc.so.6");
    if (libc === undefined) return;
    for (const library of lookupLibraries.map((each) => path.join(path.dirname(libc), each)))
      if (existsSync(library)) await this.copy(library, library);
  }
}

/** Absolute paths from `ldd`: `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone on its line. */
async function librariesOf(program: string): Promise<string[]> {
  const options = { timeout: lddTimeoutMs, env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } };
  const { stdout } = await promisify(execFile)("ldd", [program], options).catch(
    (error: unknown) => {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      // A program that is linked statically needs nothing.
      if (/not a dynamic executable|not a valid dynamic program/i.test(stdout + stderr))
        return { stdout: "" };
      throw error;
    },
  );
  return stdout.split("\n").flatMap((line) => {
    const file = /(?:=>\s*|^\s*)(\/\S+)\s+\(0x[0-9a-f]+\)\s*$/.exec(line)?.[1];
    return file === undefined ? [] : [file];
  });
}
