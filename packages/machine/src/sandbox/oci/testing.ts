/** What tests of the sandbox share: images and containers of one file each. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { type ContainerConfig } from "@spry/image";
import { temporaryDirectory } from "../../testing.ts";
import { listNames } from "../records.ts";
import {
  type ContainerSpec,
  type Isolation,
  type LocalImage,
  type PodSandbox,
  type Sandbox,
} from "../sandbox.ts";
import { type OciContainer } from "./oci-container.ts";
import { findRuntime } from "./oci-runtime.ts";
import { openOciSandbox } from "./oci-sandbox.ts";

export const why =
  process.getuid?.() === 0 && findRuntime() ? "" : " (skipped: needs root and runc on the PATH)";
export const pod = {
  uid: "11111111-2222-3333-4444-555555555555",
  namespace: "default",
  name: "hello",
};
export const mebibyte = 1024 * 1024;
/** As the Pods of Functions are. */
export const restricted: Isolation = {
  user: 1000,
  group: 1000,
  supplementalGroups: [1000],
  readOnlyRoot: true,
  allowPrivilegeEscalation: false,
  privileged: false,
  addedCapabilities: [],
  droppedCapabilities: ["ALL"],
  seccomp: "RuntimeDefault",
};
export const unconfined: Isolation = {
  supplementalGroups: [],
  readOnlyRoot: false,
  allowPrivilegeEscalation: true,
  privileged: false,
  addedCapabilities: [],
  droppedCapabilities: [],
  seccomp: "RuntimeDefault",
};

export function imageWith(files: Record<string, string>, config: ContainerConfig = {}): LocalImage {
  const rootDir = temporaryDirectory();
  chmodSync(rootDir, 0o755);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(rootDir, file)), { recursive: true });
    writeFileSync(path.join(rootDir, file), text);
  }
  const label = `node@${process.versions.node.split(".")[0]}`;
  const Labels = { "io.spry.interpreter": label };
  return { digest: "sha256:1", rootDir, config: { Labels, ...config } };
}

export function specFor(
  dir: string,
  image: LocalImage,
  more: Partial<ContainerSpec>,
): ContainerSpec {
  mkdirSync(path.join(dir, "containers", "main"), { recursive: true });
  const at = (name: string) => path.join(dir, "containers", "main", name);
  writeFileSync(at("termination-log"), "");
  return {
    name: "main",
    run: 0,
    image,
    argv: ["node", "/app/main.cjs"],
    env: {},
    mounts: [{ mountPath: "/dev/termination-log", source: at("termination-log") }],
    ports: [],
    logFile: at("0.log"),
    terminationLog: at("termination-log"),
    keepExitCode: false,
    hostName: "hello",
    isolation: restricted,
    ...more,
  };
}

/** Mounts, cgroups and processes of a data directory: what must be nothing in the end. */
export function leftovers(dataDir: string): string[] {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const trees = readdirSync("/sys/fs/cgroup").filter((name) =>
    existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`),
  );
  const groups = ["", ...trees].flatMap((tree) =>
    // A group of another platform goes at any moment.
    listNames(`/sys/fs/cgroup/${tree}`)
      .filter((name) => name.startsWith("spry-"))
      .map((name) => `/sys/fs/cgroup/${tree}/${name}`),
  );
  const hash = execFileSync("sh", ["-c", `printf %s "${dataDir}" | sha256sum | cut -c1-12`]);
  const own = groups.filter((group) => group.endsWith(hash.toString().trim()));
  const processes = readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/environ`, "utf8").includes(`SPRY_OCI=${dataDir}`)
      );
    } catch {
      return false;
    }
  });
  return [...mounts.filter((line) => line.includes(dataDir)), ...own, ...processes];
}

/** A sandbox for all rows of a `describe`, which leaves nothing behind, and containers in Pods of their own. */
export function ociContainers() {
  let dataDir = "";
  let sandbox: Sandbox;
  let place: PodSandbox;
  let number = 0;
  beforeAll(async () => {
    dataDir = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-oci-")));
    sandbox = await openOciSandbox({ dataDir });
    await sandbox.recover();
  });
  afterAll(async () => {
    await sandbox.close();
    expect(leftovers(dataDir)).toEqual([]);
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(files: Record<string, string>, more: Partial<ContainerSpec> = {}) {
    const uid = `${pod.uid.slice(0, -3)}${100 + number++}`;
    place = await sandbox.openPod({ ...pod, uid });
    const mine = place;
    onTestFinished(() => mine.close());
    const spec = specFor(place.dir, imageWith(files), more);
    const container = (await place.start(spec)) as OciContainer;
    return { container, spec, place: mine, log: () => readFileSync(spec.logFile, "utf8") };
  }

  async function runOnce(files: Record<string, string>, more: Partial<ContainerSpec> = {}) {
    const started = await start(files, more);
    const exit = await started.container.exited;
    return { ...started, exit, output: started.log() };
  }

  const main = (text: string) => ({ "app/main.cjs": text });

  return { start, runOnce, main, sandbox: () => sandbox };
}

export async function textFrom(url: string): Promise<string> {
  return (await fetch(url)).text();
}

export function librariesOf(program: string): string[] {
  const text = execFileSync("ldd", [program]).toString();
  return [...text.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? "");
}
