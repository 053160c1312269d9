/** The layers that images are put together from: each is made of this machine's files, and only when an image wants it. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { shellScripts, shellTools } from "@spry/image";
import { findPython } from "@spry/machine";
import { HostFiles, onHost } from "./host-files.ts";
import { nodeBinary, npmCli } from "./node-binary.ts";

const certificates = "/etc/ssl/certs/ca-certificates.crt";
const accounts = {
  "/etc/passwd":
    "root:x:0:0:root:/root:/bin/sh\nspry:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  "/etc/group": "root:x:0:\nspry:x:1000:\nnogroup:x:65534:\n",
  "/etc/nsswitch.conf": "hosts: files dns\n",
};
const gitHelperDirs = ["/usr/lib/git-core", "/usr/libexec/git-core"];
/** Not needed to run Functions: other people's packages, tests, editors. */
const notOfPython = new Set(
  "site-packages dist-packages test tests idlelib turtledemo __pycache__ config".split(" "),
);

/** A shell, its tools, certificates and accounts. Below all others. */
export async function systemLayer(): Promise<HostFiles> {
  const files = new HostFiles();
  for (const [name, content] of Object.entries(accounts)) files.text(name, content);
  if (existsSync(certificates)) files.copy(certificates, certificates);
  for (const tool of shellTools) {
    const file = onHost(tool);
    if (file) await files.program(realpathSync(file), `/bin/${tool}`);
  }
  for (const [name, script] of Object.entries(shellScripts))
    files.text(`/bin/${name}`, script, 0o755);
  files.link("/usr/bin/env", "/bin/env");
  return files;
}

/** `/usr/local/bin/node` of a major version; the project's own Node.js for the one that runs this. */
export async function nodeLayer(major: string, below: HostFiles): Promise<HostFiles> {
  const files = new HostFiles(below);
  await files.program(nodeBinary(major), "/usr/local/bin/node");
  return files;
}

/** The npm that installs a Function's dependencies, everywhere the same version. */
export function npmLayer(): HostFiles {
  const files = new HostFiles();
  const npm = path.dirname(path.dirname(npmCli()));
  files.directory(npm, "/usr/local/lib/node_modules/npm", new Set(["man", "docs"]));
  files.link("/usr/local/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js");
  files.link("/usr/local/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js");
  return files;
}

/** git and ssh: sources are fetched over HTTP and SSH. */
export async function gitLayer(below: HostFiles): Promise<HostFiles> {
  const files = new HostFiles(below);
  const helpers = gitHelperDirs.find(existsSync);
  const git = onHost("git");
  if (!git || !helpers) throw new Error("making images: git is not on this machine");
  for (const program of [git, onHost("ssh")]) {
    if (program) await files.program(program, program);
  }
  // Most helpers are git itself under another name; what fetches needs these.
  for (const name of ["git-remote-http", "git-remote-https", "git-sh-setup"]) {
    const file = path.join(helpers, name);
    if (existsSync(file)) await files.program(file, file);
  }
  files.link(path.join(helpers, "git"), git);
  return files;
}

/** Program and standard library stay at their paths on this machine, because the one finds the other from its own. */
export async function pythonLayer(version: string, below: HostFiles): Promise<HostFiles> {
  const python = await findPython(version);
  if (!python) throw new Error(`making images: Python ${version} is not on this machine`);
  const files = new HostFiles(below);
  const program = realpathSync(python.executable);
  await files.program(program, program);
  for (const name of ["python3", "python", `python${version}`]) {
    files.link(`/usr/local/bin/${name}`, program);
  }
  const library = path.join(python.prefix, "lib", `python${version}`);
  files.directory(library, library, notOfPython);
  const modules = path.join(library, "lib-dynload");
  if (existsSync(modules)) {
    for (const module of readdirSync(modules)) await files.libraries(path.join(modules, module));
  }
  return files;
}

/** pip of that Python, and the command for it. */
export async function pipLayer(version: string, below: HostFiles): Promise<HostFiles> {
  const python = await findPython(version);
  if (!python?.pip) throw new Error(`making images: Python ${version} has no pip here`);
  const files = new HostFiles(below);
  if (python.pip.endsWith(".whl")) files.copy(python.pip, "/usr/local/lib/pip/pip.whl");
  else files.directory(path.join(python.pip, "pip"), "/usr/local/lib/pip/pip", notOfPython);
  const place = python.pip.endsWith(".whl") ? "/usr/local/lib/pip/pip.whl" : "/usr/local/lib/pip";
  const script = `#!/usr/local/bin/python3\nimport sys\nsys.path.insert(0, ${JSON.stringify(place)})\nfrom pip._internal.cli.main import main\nsys.exit(main())\n`;
  files.text("/usr/local/bin/pip", script, 0o755);
  return files;
}

/** Installs Python packages faster than pip, to the same end. */
export async function uvLayer(version: string, below: HostFiles): Promise<HostFiles> {
  const python = await findPython(version);
  if (!python?.uv) throw new Error(`making images: Python ${version} has no uv here`);
  const files = new HostFiles(below);
  await files.program(python.uv, "/usr/local/bin/uv");
  return files;
}
