/**
 * Runs the hostile program in a sandbox of this process's user, next to a Pod that is its victim, and prints what it
 * has got. A program of its own, so that it can be run as any user: `run-hostile.ts <process|oci> <directory>`.
 */
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import path from "node:path";
import {
  type ContainerSpec,
  type LocalImage,
  openOciSandbox,
  openProcessSandbox,
  type PodSandbox,
} from "@spry/machine";

const [kind = "process", directory = ""] = process.argv.slice(2);
process.umask(0o022);
const dataDir = path.join(directory, "node");
const secret = "value-that-nobody-else-may-see";
const platformFiles = ["kubeconfig", "state.db"].map((name) => path.join(directory, name));
for (const file of platformFiles) writeFileSync(file, secret, { mode: 0o600 });

// Containers do not keep this program alive.
setInterval(() => {}, 1000);
const open = kind === "oci" ? openOciSandbox : openProcessSandbox;
const sandbox = await open({ dataDir });
await sandbox.recover();
const server = createServer().listen(0, "127.0.0.1");
await once(server, "listening");

/** Of this run's own, because it is one of the machine's network, which `process` shares. */
const accomplice = `spry-${process.pid}`;
/** Gives its root directory to all that ask. */
const passRoot = `
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("\\0${accomplice}")
server.listen()
peer, _ = server.accept()
socket.send_fds(peer, [b"x"], [os.open("/", os.O_RDONLY)])`;
const victim = await start(
  "victim",
  `require("node:child_process").spawn("python3", ["-c", ${JSON.stringify(passRoot)}]).on("error", () => {});
   require("node:fs").writeSync(3, "ready\\n"); setInterval(() => {}, 1000)`,
);
await victim.container.ready;
const victimFile = path.join(victim.place.dir, "volumes", "own", "secret");
mkdirSync(path.dirname(victimFile), { recursive: true, mode: 0o755 });
writeFileSync(victimFile, secret, { mode: 0o600 });

const attacker = await start("attacker", undefined);
await attacker.container.exited;
const report = readFileSync(path.join(attacker.place.dir, "volumes", "scratch", "report"), "utf8");
const log = readFileSync(path.join(attacker.place.dir, "containers", "main", "0.log"), "utf8");
console.log(
  JSON.stringify({
    kind: sandbox.runtimeVersion,
    isolation: sandbox.isolation,
    log,
    ...JSON.parse(report),
  }),
);
for (const { place } of [attacker, victim]) await place.close();
await sandbox.close();
server.close();
process.exit(0);

async function start(name: string, source: string | undefined) {
  const uid = `${name}-1111`;
  const place = await sandbox.openPod({ uid, namespace: "default", name });
  const rootDir = path.join(dataDir, "images", name);
  mkdirSync(path.join(rootDir, "app"), { recursive: true });
  const main = path.join(rootDir, "app", `${name}.cjs`);
  if (source === undefined) copyFileSync(path.join(import.meta.dirname, "hostile.cjs"), main);
  else writeFileSync(main, source);
  const scratch = path.join(place.dir, "volumes", "scratch");
  mkdirSync(scratch, { recursive: true });
  chmodSync(scratch, 0o777);
  // As a container of the same Pod may have left it.
  symlinkSync(platformFiles[0] ?? "", path.join(scratch, "link"));
  const container = await place.start(
    specOf(name, place, { digest: "sha256:1", rootDir, config: imageConfig() }),
  );
  return { place, container };
}

function imageConfig() {
  return { Labels: { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` } };
}

function specOf(name: string, place: PodSandbox, image: LocalImage): ContainerSpec {
  const dir = path.join(place.dir, "containers", "main");
  mkdirSync(dir, { recursive: true });
  const terminationLog = path.join(dir, "termination-log");
  writeFileSync(terminationLog, "");
  const targets = {
    files: platformFiles,
    dataDir: directory,
    pods: path.join(dataDir, "pods"),
    uid: path.basename(place.dir),
    backwards: Array.from(secret).reverse().join(""),
    victimMark: "victim.cjs",
    victimFile: path.join(dataDir, "pods", "victim-1111", "volumes", "own", "secret"),
    processes: name === "attacker" ? [process.pid, victimPid()] : [],
    port: (server.address() as AddressInfo).port,
    report: "/scratch/report",
    accomplice,
  };
  const scratch = path.join(place.dir, "volumes", "scratch");
  if (kind !== "oci") targets.report = path.join(scratch, "report");
  return {
    name: "main",
    run: 0,
    image,
    argv: ["node", `/app/${name}.cjs`],
    env: {
      TARGETS: JSON.stringify(targets),
      VOLUME: "/scratch",
      ...(name === "victim" && { PASSWORD: secret }),
      // Not for the helpers, which have privileges.
      LD_PRELOAD: "/app/evil.so",
    },
    mounts: [
      { mountPath: "/dev/termination-log", source: terminationLog },
      { mountPath: "/scratch", source: scratch },
    ],
    ports: [],
    logFile: path.join(dir, "0.log"),
    terminationLog,
    keepExitCode: true,
    hostName: name,
    isolation: {
      user: 1000,
      supplementalGroups: [],
      readOnlyRoot: false,
      allowPrivilegeEscalation: false,
      privileged: false,
      addedCapabilities: [],
      droppedCapabilities: ["ALL"],
      seccomp: "RuntimeDefault",
    },
  };
}

function victimPid(): number {
  const record = ["process.json", "oci.json"].map((file) =>
    path.join(dataDir, "pods/victim-1111/containers/main", file),
  );
  for (const file of record) {
    try {
      return (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;
    } catch {
      // The other kind.
    }
  }
  return 0;
}
