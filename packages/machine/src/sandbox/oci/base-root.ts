import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { chmod, chown, readdir, readFile, readlink, rename, rm } from "node:fs/promises";
import path from "node:path";
import { shellScripts, shellTools } from "@spry/image";
import { type Interpreters, interpretersIn } from "../interpreters.ts";
import { findPython } from "../python-installations.ts";
import { RootTree } from "./root-tree.ts";

/** A new layout makes a new base. */
const layout = "5";

const toolDirs = ["/usr/bin", "/bin"];
const gitHelperDirs = ["/usr/lib/git-core", "/usr/libexec/git-core"];

const passwd = `root:x:0:0:root:/root:/bin/sh
node:x:1000:1000::/home/node:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
`;
const group = "root:x:0:\nnode:x:1000:\nnogroup:x:65534:\n";

/** Where npm is in a container; bound there from the host. */
export const npmMountPath = "/usr/local/lib/node_modules/npm";
/** pip's settings for the virtual environment that `/usr/local` is to Python. */
export const pipConfigMountPath = "/usr/local/pip.conf";
/** npm's global configuration, as it finds it from `/usr/local/bin/node`. */
export const npmrcMountPath = "/usr/local/etc/npmrc";
/** A file of certificates is named by its path on the host; in a container it is here. */
export const certificateMountPaths = {
  npm: "/usr/local/etc/npm-ca.pem",
  pip: "/usr/local/etc/pip-ca.pem",
};

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

  /** Where its parts are that lie below one of these directories of a container. */
  async partsBelow(interpreter: string, dirs: readonly string[]): Promise<string[]> {
    const names = interpretersIn(interpreter);
    const files = await Promise.all(names.map((name) => this.#interpreters.filesOf(name)));
    const base = this.#ready.get(interpreter) ?? "";
    const isBelow = (file: string) => dirs.some((dir) => file.startsWith(`${dir}/`));
    return [...new Set(files.flat())].filter((file) => isBelow(file) && existsSync(base + file));
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

  async #provide(label: string, progress: (message: string) => void): Promise<string> {
    const programs: Program[] = [];
    for (const name of interpretersIn(label)) {
      const bin = await this.#interpreters.ensure(name, progress);
      const isPython = name.startsWith("python@");
      const file = realpathSync(path.join(bin, isPython ? "python3" : "node"));
      programs.push({ name, bin, file });
    }
    const facts = programs.map(({ file }) => {
      const { size, mtimeMs } = statSync(file);
      return [file, size, mtimeMs].join();
    });
    const hash = createHash("sha256")
      .update([layout, ...facts].join())
      .digest("hex")
      .slice(0, 12);
    const dir = path.join(this.#dir, `${label.replace(/[^\w.]/g, "-")}-${hash}`);
    if (!existsSync(dir)) {
      const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
      try {
        await assemble(partial, programs);
        await rename(partial, dir);
      } catch (cause) {
        throw new Error(`assembling a root file system for ${label}`, { cause });
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    }
    this.#ready.set(label, dir);
    return dir;
  }
}

/** An interpreter on this machine: its directory as `Interpreters` has made it, and the program itself. */
interface Program {
  name: string;
  bin: string;
  file: string;
}

async function assemble(dir: string, programs: readonly Program[]): Promise<void> {
  const root = new RootTree(dir);
  for (const name of ["/dev", "/proc", "/sys", "/root", "/var", npmMountPath])
    await root.directory(name);
  for (const name of ["/tmp", "/var/tmp"]) await chmod(await root.directory(name), 0o1777);
  await chown(await root.directory("/home/node"), 1000, 1000).catch(() => {});
  await root.file("/etc/passwd", passwd);
  await root.file("/etc/group", group);
  await root.file("/etc/nsswitch.conf", "hosts: files dns\n");
  await root.file(npmrcMountPath, "");
  await root.file(pipConfigMountPath, "");
  // Places where each Pod's own are mounted.
  for (const name of ["/etc/hosts", "/etc/resolv.conf", ...Object.values(certificateMountPaths)])
    await root.file(name, "");
  const certificates = "/etc/ssl/certs/ca-certificates.crt";
  if (existsSync(certificates)) await root.copy(certificates, certificates);
  for (const program of programs)
    if (program.name.startsWith("python@")) await addPython(root, program);
    else await addNode(root, program);
  for (const tool of shellTools) {
    const file = onHost(tool);
    if (file !== undefined) await root.program(realpathSync(file), `/bin/${tool}`);
  }
  for (const [name, script] of Object.entries(shellScripts))
    await root.file(`/bin/${name}`, script, 0o755);
  await addGit(root);
  await root.complete();
  await root.directory("/usr/bin");
  await root.link("/usr/bin/env", "/bin/env");
}

function onHost(program: string): string | undefined {
  return toolDirs.map((dir) => path.join(dir, program)).find(existsSync);
}

/** For Functions from Git: their sources are fetched by the host's git, over HTTP or SSH. */
async function addGit(root: RootTree): Promise<void> {
  const git = onHost("git");
  const helpers = gitHelperDirs.find(existsSync);
  if (git === undefined || helpers === undefined) return;
  for (const program of [git, onHost("ssh")])
    if (program !== undefined) await root.program(realpathSync(program), program);
  await root.directoryOfHost(helpers);
  const http = path.join(helpers, "git-remote-http");
  if (existsSync(http)) root.libraries(http);
}

async function addNode(root: RootTree, { file }: Program): Promise<void> {
  await root.program(file, "/usr/local/bin/node");
  await root.link("/usr/local/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js");
  await root.link("/usr/local/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js");
}

/** Not needed to run Functions: other people's packages, tests, editors. */
const notOfPython = new Set(
  "site-packages dist-packages test tests idlelib turtledemo __pycache__".split(" "),
);

/**
 * Python's program and standard library stay where they are on the host, because the program finds
 * the one from the other. `/usr/local` is the virtual environment that `Interpreters` has made.
 */
async function addPython(root: RootTree, { name, bin, file }: Program): Promise<void> {
  const version = name.replace("python@", "");
  const python = await findPython(version);
  if (!python) throw new Error(`Python ${version} is no longer on this machine`);
  await root.program(file, file);
  const library = path.join(python.prefix, "lib", `python${version}`);
  await root.directoryOfHost(library, notOfPython);
  const modules = path.join(library, "lib-dynload");
  for (const module of await readdir(modules).catch(() => []))
    root.libraries(path.join(modules, module));
  if (python.pip && statSync(python.pip).isFile()) await root.copy(python.pip, python.pip);
  else if (python.pip) await root.directoryOfHost(path.join(python.pip, "pip"));
  await copyEnvironment(root, path.dirname(bin));
}

/** `bin/`, `pyvenv.cfg` and `pip.py`; its `pip.conf` is mounted, because it may change. */
async function copyEnvironment(root: RootTree, environment: string): Promise<void> {
  for (const file of ["pyvenv.cfg", "pip.py"])
    await root.file(`/usr/local/${file}`, await readFile(path.join(environment, file), "utf8"));
  for (const entry of await readdir(path.join(environment, "bin"), { withFileTypes: true })) {
    // Ten times the size of everything else here, for builds alone, which have pip.
    if (entry.name === "uv") continue;
    const source = path.join(environment, "bin", entry.name);
    const target = `/usr/local/bin/${entry.name}`;
    if (entry.isSymbolicLink()) await root.link(target, realpathSync(await readlink(source)));
    else await root.copy(source, target);
  }
}
