/**
 * A hostile program: tries to get out of its container in every way that is known here, and prints what it got. What
 * it is to look for is in its environment. Everything that it takes or writes is bounded.
 */
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");

const tell = JSON.parse(process.env.TARGETS);
// Written backwards: its own environment is not what is looked for.
const secret = [...tell.backwards].reverse().join("");
const attempt = (action) => {
  try {
    const got = action();
    return got === undefined ? "done" : got;
  } catch (error) {
    return `refused: ${error.code ?? error.status ?? error.message}`;
  }
};
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { stdio: "ignore", timeout: 5000 });
  return error || status !== 0 ? "refused" : "done";
};
const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
const statusOf = (name) =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(fs.readFileSync("/proc/self/status", "utf8"))?.[1];
const limitOf = (name) =>
  new RegExp(`^${name}\\s+(\\S+)`, "m").exec(fs.readFileSync("/proc/self/limits", "utf8"))?.[1];

/** How many more processes there can be, up to so many; they end with the container. */
function bomb(most) {
  const script = `i=0; while [ $i -lt ${most} ]; do sleep 120 >/dev/null & i=$((i+1)); done; echo $i`;
  const { stdout } = spawnSync("sh", ["-c", script], {
    timeout: 60_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const all = Number(String(stdout).trim());
  return all === most ? "done" : "refused";
}

/** Gets a descriptor of another container's root directory by a socket without a file, and goes up from there. */
function climb() {
  const script = `
import os, socket, sys, time
peer = socket.socket(socket.AF_UNIX)
for _ in range(40):
    try:
        peer.connect("\\0" + sys.argv[1])
        break
    except OSError:
        time.sleep(0.05)
_, [fd], _, _ = socket.recv_fds(peer, 1, 1)
names = os.listdir(os.open("../" * 20, os.O_RDONLY, dir_fd=fd))
print("out: " if "sys" in names else "refused, ends at: ", *sorted(names))`;
  const { stdout } = spawnSync("python3", ["-c", script, tell.accomplice], {
    timeout: 5000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return String(stdout ?? "").trim() || "refused";
}

function connect(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: "127.0.0.1", port });
    socket.setTimeout(1000, () => socket.destroy(new Error("timeout")));
    socket.on("connect", () => resolve("done") ?? socket.destroy());
    socket.on("error", () => resolve("refused"));
  });
}

async function main() {
  const results = {
    "read the platform's files": tell.files.map((file) =>
      attempt(() => fs.readFileSync(file, "utf8")),
    ),
    "list other Pods": attempt(() => fs.readdirSync(tell.pods).filter((name) => name !== tell.uid)),
    "read another Pod's files": attempt(() => fs.readFileSync(tell.victimFile, "utf8")),
    "read environments": pids.filter((pid) => {
      const text = attempt(() => fs.readFileSync(`/proc/${pid}/environ`, "latin1"));
      return text.includes(secret);
    }),
    "see processes": pids.filter((pid) => {
      const text = attempt(() => fs.readFileSync(`/proc/${pid}/cmdline`, "latin1"));
      return text.includes(tell.victimMark);
    }),
    "signal other processes": tell.processes.map((pid) =>
      attempt(() => process.kill(pid, 0) && undefined),
    ),
    "leave by the first process's root": attempt(
      () => fs.readdirSync(`/proc/1/root${tell.dataDir}`).includes("secret") || "refused",
    ),
    "become root": [
      attempt(() => process.setuid(0)),
      run("setpriv", "--reuid=0", "true"),
      run("su", "-c", "true"),
    ],
    mount: [run("mount", "-t", "tmpfs", "none", "/tmp"), run("unshare", "--mount", "true")],
    "make a user namespace": run("unshare", "--user", "--map-root-user", "true"),
    "leave the root directory": run("chroot", "/proc/1/root", "true"),
    "write to its root directory": ["/x", "/etc/x", "/dev/x"].map((file) =>
      attempt(() => fs.writeFileSync(file, "x")),
    ),
    climb: climb(),
    "make a device": run("mknod", "/tmp/disk", "b", "8", "0"),
    "open devices": ["mem", "kmsg", "sda", "vda", "kvm"].map((name) =>
      attempt(() => fs.closeSync(fs.openSync(`/dev/${name}`, "r"))),
    ),
    "write to the machine": [
      "/etc/hosts",
      "/usr/bin/env",
      "/usr/x",
      "/sys/kernel/uevent_helper",
      "/proc/sys/kernel/core_pattern",
      "/proc/sysrq-trigger",
    ].map((file) => attempt(() => fs.closeSync(fs.openSync(file, "a")))),
    "write to its image": attempt(() => fs.writeFileSync(path.join(__dirname, "planted.cjs"), "")),
    "dump its memory": limitOf("Max core file size"),
    fork: bomb(1500),
    "call loopback": await connect(tell.port),
    "keep capabilities": statusOf("CapEff"),
    "gain privileges": statusOf("NoNewPrivs"),
    "follow a link in a volume": attempt(() =>
      fs.readFileSync(path.join(process.env.VOLUME, "link"), "utf8"),
    ),
    user: process.getuid(),
  };
  fs.writeFileSync(tell.report, JSON.stringify(results));
}

main().catch((error) =>
  fs.writeFileSync(tell.report, JSON.stringify({ error: String(error.stack) })),
);
