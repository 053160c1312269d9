import { execFile } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { assembleImage } from "../assemble-image.ts";
import { type Digest } from "../digest.ts";
import { createLayer, type LayerFile } from "../layer.ts";
import { type ImageManifest } from "../manifest.ts";
import { librariesLoadedLater, sharedLibrariesOfAll } from "../shared-libraries.ts";
import { type Base } from "./base.ts";
import { pythonVersion } from "./python-dependencies.ts";
import { UserError } from "./user-error.ts";

/** Loaded by older C libraries when the first name is looked up, without being linked. */
const certificates = "/etc/ssl/certs/ca-certificates.crt";
const always: LayerFile[] = [
  {
    path: "etc/passwd",
    content: "root:x:0:0:root:/root:/sbin/nologin\nfunction:x:1000:1000::/tmp:/sbin/nologin\n",
  },
  { path: "etc/group", content: "root:x:0:\nfunction:x:1000:\n" },
  { path: "etc/nsswitch.conf", content: "hosts: files dns\n" },
  // Other container runtimes put nothing there.
  { path: "tmp", folder: true, mode: 0o1777 },
];
/** Not needed to run Functions. */
const leftOutOfPython = new Set(
  "site-packages dist-packages test tests idlelib turtledemo __pycache__".split(" "),
);
const standardLibrary = "import sysconfig; print(sysconfig.get_path('stdlib'))";

/**
 * A base image of this machine's own interpreter: the program at `/usr/local/bin`, every shared
 * library that it asks for, certificates, two accounts; no shell, no package manager. It needs no
 * registry, and is the same as long as the machine's files are.
 */
export async function hostBase(runtime: string, scratch: string): Promise<Base> {
  const version = pythonVersion(runtime);
  const files = new Map<string, LayerFile>();
  for (const file of always) files.set(file.path, file);
  if (version === undefined) await addProgram(files, process.execPath, "/usr/local/bin/node");
  else await addPython(files, version);
  if (existsSync(certificates)) addFile(files, certificates, certificates);
  const scratchFile = join(scratch, "base.tar");
  const layer = await createLayer([...files.values()], { scratchFile });
  const image = assembleImage({
    layers: [layer],
    config: { User: "1000:1000", Env: ["PATH=/usr/local/bin:/usr/bin:/bin"] },
  });
  return {
    digest: image.digest,
    manifest: JSON.parse(Buffer.from(image.bytes).toString()) as ImageManifest,
    config: JSON.parse(Buffer.from(image.config.content).toString()) as Base["config"],
    bodyOf: ({ digest }) => bodyOf(layer, digest),
  };
}

function bodyOf(layer: Awaited<ReturnType<typeof createLayer>>, digest: Digest) {
  if (!layer.body || digest !== layer.descriptor.digest) throw new Error(`no layer ${digest}`);
  return layer.body;
}

async function addProgram(
  files: Map<string, LayerFile>,
  program: string,
  name: string,
): Promise<void> {
  addFile(files, program, name);
  await addLibraries(files, [program]);
}

async function addLibraries(files: Map<string, LayerFile>, of: readonly string[]): Promise<void> {
  for (const libraries of (await sharedLibrariesOfAll(of)).values())
    for (const library of [...libraries, ...librariesLoadedLater(libraries)])
      addFile(files, library, library);
}

/** Program and standard library stay at their paths, because the one finds the other from its own. */
async function addPython(files: Map<string, LayerFile>, version: string): Promise<void> {
  const run = promisify(execFile);
  const python = `python${version}`;
  const ask = async (code: string) => (await run(python, ["-I", "-c", code])).stdout.trim();
  const found = await ask("import sys; print(sys._base_executable or sys.executable)").catch(() => {
    throw new UserError(
      `base host: ${python} is not on this machine's PATH: install it, or specify a base image that has it`,
    );
  });
  const program = realpathSync(found);
  const library = await ask(standardLibrary);
  await addProgram(files, program, program);
  for (const name of ["python3", python])
    files.set(`usr/local/bin/${name}`, { path: `usr/local/bin/${name}`, link: program });
  addFolder(files, library);
  const modules = join(library, "lib-dynload");
  if (!existsSync(modules)) return;
  await addLibraries(
    files,
    readdirSync(modules).map((module) => join(modules, module)),
  );
}

function addFolder(files: Map<string, LayerFile>, folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (leftOutOfPython.has(entry.name)) continue;
    const file = join(folder, entry.name);
    if (entry.isDirectory()) addFolder(files, file);
    else if (entry.isFile()) addFile(files, file, file);
    else if (entry.isSymbolicLink()) {
      const path = file.slice(1);
      files.set(path, { path, link: readlinkSync(file) });
    }
  }
}

function addFile(files: Map<string, LayerFile>, source: string, name: string): void {
  const file = realpathSync(source);
  const path = name.replace(/^\/+/, "");
  files.set(path, { path, file, mode: lstatSync(file).mode });
}
