import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processExists } from "@spry/kube";
import { type GitCredentials, secretsOf } from "./credentials.ts";
import { GitError } from "./git-error.ts";
import { type GitServer } from "./git-server.ts";
import { type GitRun, runProgram } from "./git-process.ts";
import { type RepositoryUrl } from "./repository-url.ts";

export interface GitSessionOptions {
  repository: RepositoryUrl;
  /** Where its server was found: Git asks there, and nowhere else. */
  server: GitServer;
  /** The only way to it, for http. */
  proxy?: string | undefined;
  credentials?: GitCredentials | undefined;
  /** Where its directory is made. Default: the system's temporary directory. */
  scratch?: string | undefined;
  /** Of this, only what is the way to servers is handed on: proxies, certificates, `PATH`. */
  environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Of one program in a session. */
export type SessionRun = Pick<
  GitRun,
  "timeoutMs" | "overdue" | "maxOutputBytes" | "maxMemoryBytes" | "signal"
> & {
  cwd?: string;
  /** Besides what the session itself sets. */
  env?: Record<string, string>;
};

const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [
  name,
  name.toLowerCase(),
]);
const withoutProxies = [
  "PATH",
  "TMPDIR",
  "GIT_SSL_CAINFO",
  "GIT_SSL_CAPATH",
  "GIT_PROXY_SSL_CAINFO",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  // By which the process sandbox finds what a container has left behind.
  "SPRY_ROOT",
];
const handedOn = [...proxies, ...withoutProxies];

/**
 * A place for Git to work in, with what it needs to get at one repository: a directory that only
 * this user can read, which is home and temporary directory of its processes and is removed at the
 * end. Credentials are in files there, never in arguments or environment.
 */
export class GitSession implements Disposable {
  readonly directory: string;
  readonly #env: Record<string, string>;
  readonly #secrets: readonly string[];

  constructor({ repository, server, proxy, credentials, scratch, environment }: GitSessionOptions) {
    assertFits(repository, credentials);
    this.directory = mkdtempSync(join(scratch ?? tmpdir(), `spry-git-${process.pid}-`));
    this.#secrets = secretsOf(credentials);
    try {
      this.#env = {
        ...pick(environment ?? process.env, proxy === undefined ? handedOn : withoutProxies),
        ...this.#baseEnvironment(),
        ...this.#ssh(server, credentials),
        ...configEnvironment([
          // No hooks, no helpers, nothing in the background, and nowhere but where we were sent.
          ["core.hooksPath", "/dev/null"],
          ["credential.helper", ""],
          ["gc.auto", "0"],
          ["maintenance.auto", "false"],
          ["advice.detachedHead", "false"],
          ["submodule.recurse", "false"],
          ["protocol.version", "2"],
          // Where it leads is looked at first: see redirects.ts.
          ["http.followRedirects", "false"],
          ...(proxy === undefined ? pinned(server) : [["http.proxy", proxy] as const]),
          // What is larger goes through memory in pieces.
          ["core.bigFileThreshold", "16m"],
          ["pack.threads", "1"],
          ...this.#http(repository, credentials),
        ]),
      };
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Runs `git <args>`; see `runProgram`. */
  run(args: readonly string[], options: SessionRun): Promise<string> {
    return this.#run(["git", ...args], options);
  }

  /** Runs a command on the repository's SSH server, as Git itself would get there; see `runProgram`. */
  runRemotely(
    { user, host, port, command }: { user: string; host: string; port: number; command: string },
    options: SessionRun,
  ): Promise<string> {
    const ssh = ["sh", "-c", 'eval "exec $GIT_SSH_COMMAND \\"\\$@\\""', "ssh"];
    return this.#run([...ssh, "-p", String(port), `${user}@${host}`, command], options);
  }

  #run(
    command: readonly string[],
    { cwd = this.directory, env = {}, ...bounds }: SessionRun,
  ): Promise<string> {
    const environment = { ...this.#env, ...env };
    return runProgram(command, { ...bounds, cwd, env: environment, secrets: this.#secrets });
  }

  #baseEnvironment(): Record<string, string> {
    return {
      HOME: this.directory,
      XDG_CONFIG_HOME: this.directory,
      // Failures are distinguished by their English words.
      LC_ALL: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CEILING_DIRECTORIES: join(this.directory, ".."),
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "/bin/false",
      GIT_ALLOW_PROTOCOL: "http:https:ssh",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_HTTP_LOW_SPEED_LIMIT: "1000",
      GIT_HTTP_LOW_SPEED_TIME: "20",
    };
  }

  /** A helper for this origin only: a redirect elsewhere does not get to see the password. */
  #http(repository: RepositoryUrl, credentials: GitCredentials | undefined): ConfigEntry[] {
    if (credentials?.type !== "basic") return [];
    const { username, password } = credentials;
    const file = this.#write("credential", `username=${username}\npassword=${password}\n`);
    const helper = `!f() { test "$1" = get && cat ${quoted(file)}; }; f`;
    return [[`credential.${repository.origin}.helper`, helper]];
  }

  #ssh(server: GitServer, credentials: GitCredentials | undefined): Record<string, string> {
    const key = credentials?.type === "key" ? credentials : undefined;
    const knownHosts = this.#write("known_hosts", key?.knownHosts ?? "");
    const options: string[] = [
      `StrictHostKeyChecking=${key?.knownHosts ? "yes" : "accept-new"}`,
      `UserKnownHostsFile=${quoted(knownHosts, '"')}`,
      "GlobalKnownHostsFile=/dev/null",
      "IdentitiesOnly=yes",
      "IdentityAgent=none",
      `IdentityFile=${key ? quoted(this.#write("key", key.key), '"') : "none"}`,
      "PreferredAuthentications=publickey",
      "NumberOfPasswordPrompts=1",
      `BatchMode=${key?.passphrase ? "no" : "yes"}`,
      "UpdateHostKeys=no",
      "CheckHostIP=no",
      "ControlMaster=no",
      "ForwardAgent=no",
      "ConnectTimeout=15",
      "ServerAliveInterval=15",
      "LogLevel=ERROR",
      ...sshPin(server),
    ];
    const flags = options.map((option) => `-o ${quoted(option)}`).join(" ");
    return { GIT_SSH_COMMAND: `ssh -F /dev/null ${flags}`, ...this.#passphrase(key?.passphrase) };
  }

  #passphrase(passphrase: string | undefined): Record<string, string> {
    if (!passphrase) return {};
    const file = this.#write("passphrase", `${passphrase}\n`);
    const program = this.#write("ask", `#!/bin/sh\nexec cat ${quoted(file)}\n`, 0o700);
    return { SSH_ASKPASS: program, SSH_ASKPASS_REQUIRE: "force", DISPLAY: ":0" };
  }

  #write(name: string, content: string, mode = 0o600): string {
    const file = join(this.directory, name);
    writeFileSync(file, content, { mode, flag: "wx" });
    return file;
  }
}

/**
 * Removes what sessions of killed processes left behind: directories of processes that are no more,
 * or that had this process's id before it.
 */
export function removeAbandonedSessions(scratch = tmpdir()): void {
  const startedAt = Date.now() - process.uptime() * 1000;
  for (const name of readdirSync(scratch)) {
    const pid = Number(/^spry-git-(\d+)-\w+$/.exec(name)?.[1]);
    const found = pid > 0 && lstatSync(join(scratch, name), { throwIfNoEntry: false });
    if (!found || !found.isDirectory() || found.uid !== process.getuid?.()) continue;
    const isOurs = pid === process.pid && found.mtimeMs >= startedAt;
    if (isOurs || (pid !== process.pid && processExists(pid))) continue;
    try {
      rmSync(join(scratch, name), { recursive: true, force: true });
    } catch {
      // Another platform may be removing it too; what is left is removed at the next start.
    }
  }
}

function assertFits({ transport }: RepositoryUrl, credentials: GitCredentials | undefined): void {
  if (!credentials || (credentials.type === "key") === (transport === "ssh")) return;
  const field = "source.gitRepository";
  const needed = credentials.type === "key" ? "an SSH address" : "an https URL";
  throw new GitError(
    "unrecoverable",
    `${field}.auth.type ${credentials.type} needs ${needed} as ${field}.url`,
  );
}

/** curl asks its own list before any name server. */
function pinned({ host, port, addresses }: GitServer): ConfigEntry[] {
  if (addresses.length === 0 || isIP(host)) return [];
  const list = addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address));
  return [["http.curloptResolve", `${host}:${port}:${list.join(",")}`]];
}

/** Host keys stay known by the name. */
function sshPin({ host, port, addresses: [address], endpoints }: GitServer): string[] {
  if (address === undefined || isIP(host)) return [];
  const [endpoint] = endpoints ?? [];
  return [
    ...(endpoint
      ? [`HostName=${endpoint.host}`, `Port=${endpoint.port}`]
      : [`HostName=${address}`]),
    `HostKeyAlias=${port === 22 ? host : `[${host}]:${port}`}`,
  ];
}

type ConfigEntry = readonly [key: string, value: string];

/** Configuration without files and without arguments. */
function configEnvironment(entries: readonly ConfigEntry[]): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(entries.length) };
  for (const [i, [key, value]] of entries.entries()) {
    env[`GIT_CONFIG_KEY_${i}`] = key;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  }
  return env;
}

function pick(
  all: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])),
  );
}

/** For a shell, or inside of one of ssh's options. */
function quoted(text: string, quote = "'"): string {
  return quote === "'" ? `'${text.replaceAll("'", `'\\''`)}'` : `"${text}"`;
}
