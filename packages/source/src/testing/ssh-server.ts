/** A Git server over SSH: an sshd of the test's own, which lets its own user in with one key. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { endChild, freePort, hasEnded } from "@spry/test-kit";

const program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"].find((file) =>
  existsSync(file),
);

/** Why there can be no SSH server here; empty when there can. */
export const noSshReason = program ? "" : "sshd is not installed (Debian: openssh-server)";

export interface KeyPair {
  privateKey: string;
  publicKey: string;
}

export class SshServer implements AsyncDisposable {
  readonly #address: string;
  /** What `git-lfs-authenticate` prints, for each question; without it, the server does not know the command. */
  set lfsLogin(answer: string | undefined) {
    const file = join(this.#directory, "lfs-login");
    if (answer === undefined) rmSync(file, { force: true });
    else writeFileSync(file, answer);
  }

  /** The questions of `git-lfs-authenticate`. */
  get lfsQuestions(): string[] {
    const file = join(this.#directory, "lfs-questions");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  /** A line for known_hosts. */
  readonly hostKey: string;
  readonly #directory: string;
  readonly #child: ChildProcess;

  static async start(allowed: readonly KeyPair[], address = "127.0.0.1"): Promise<SshServer> {
    const directory = mkdtempSync(join(tmpdir(), "sshd-"));
    const port = await freePort(address);
    // Started by root, it wants a place to lock its children in.
    if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true });
    const host = createKeyPair();
    writeFileSync(join(directory, "host"), host.privateKey, { mode: 0o600 });
    const keys = allowed.map(({ publicKey }) => `${publicKey}\n`).join("");
    writeFileSync(join(directory, "authorized_keys"), keys, { mode: 0o600 });
    const config = join(directory, "config");
    writeFileSync(
      config,
      [
        `ListenAddress ${address}:${port}`,
        `HostKey ${join(directory, "host")}`,
        `AuthorizedKeysFile ${join(directory, "authorized_keys")}`,
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        // Git and a login for its LFS, and nothing else.
        `ForceCommand ${join(directory, "command")}`,
        "AcceptEnv GIT_PROTOCOL",
      ].join("\n"),
    );
    writeFileSync(
      join(directory, "command"),
      [
        "#!/bin/sh",
        `cd ${directory}`,
        'case "$SSH_ORIGINAL_COMMAND" in "git-lfs-authenticate "*)',
        '  echo "$SSH_ORIGINAL_COMMAND" >> lfs-questions',
        "  if [ -f lfs-login ]; then exec cat lfs-login; fi;;",
        "esac",
        'exec git -c safe.directory="*" shell -c "$SSH_ORIGINAL_COMMAND"',
      ].join("\n"),
      { mode: 0o700 },
    );
    const child = spawn(program ?? "", ["-D", "-e", "-f", config], { stdio: "ignore" });
    const server = new SshServer(directory, `${address}:${port}`, host, child);
    await listening(address, port, child);
    return server;
  }

  private constructor(directory: string, address: string, host: KeyPair, child: ChildProcess) {
    this.#directory = directory;
    this.#child = child;
    this.#address = address;
    const [type, key] = host.publicKey.split(" ");
    const [name, port] = address.split(":");
    this.hostKey = `[${name}]:${port} ${type} ${key}`;
  }

  get port(): number {
    return Number(this.#address.split(":")[1]);
  }

  /** The address of a directory on this machine. */
  urlOf(directory: string): string {
    return `ssh://${userInfo().username}@${this.#address}${directory}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endChild(this.#child, "SIGTERM");
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export function createKeyPair(passphrase = ""): KeyPair {
  const directory = mkdtempSync(join(tmpdir(), "key-"));
  try {
    const file = join(directory, "key");
    const args = ["-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", file];
    execFileSync("ssh-keygen", args, { stdio: "ignore" });
    const read = (name: string) => readFileSync(name, "utf8");
    return { privateKey: read(file), publicKey: read(`${file}.pub`).trim() };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function listening(address: string, port: number, child: ChildProcess): Promise<void> {
  const end = performance.now() + 10_000;
  while (performance.now() < end && !hasEnded(child)) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, address, () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("starting sshd: it does not listen");
}
