import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { type Clock } from "./clock.ts";
import { type Credential, type CredentialSource } from "./credentials.ts";
import { type ClusterConfig, type ExecConfig } from "./kubeconfig.ts";

const timeoutMs = 60_000;
const maxOutputBytes = 1024 * 1024;
/** A credential that ends within this time is replaced before it is refused. */
const earlyMs = 10_000;

interface Cached {
  credential: Credential;
  expiresAt: number;
}

/** What a plugin prints (client-go's `ExecCredential`). */
interface Printed {
  apiVersion?: string;
  kind?: string;
  status?: {
    token?: string;
    clientCertificateData?: string;
    clientKeyData?: string;
    expirationTimestamp?: string;
  };
}

/**
 * Credentials printed by a plugin, kept until they expire or are refused. However many requests wait
 * for it, the plugin runs once.
 */
export function execCredentials(
  exec: ExecConfig,
  cluster: ClusterConfig,
  clock: Clock,
): CredentialSource {
  let cached: Cached | undefined;
  let running: Promise<Cached> | undefined;
  return {
    async current() {
      if (cached && clock.now() < cached.expiresAt - earlyMs) return cached.credential;
      running ??= run(exec, cluster).finally(() => (running = undefined));
      cached = await running;
      return cached.credential;
    },
    refused(credential) {
      if (cached?.credential === credential) cached = undefined;
      return true;
    },
  };
}

async function run(exec: ExecConfig, cluster: ClusterConfig): Promise<Cached> {
  if (exec.interactiveMode === "Always") {
    throw new Error(
      `running ${exec.command}: it needs a terminal (interactiveMode: Always), and none is available`,
    );
  }
  const output = await print(exec, cluster);
  const failure = (why: string) => new Error(`running ${exec.command}: it ${why}`);
  let printed: Printed;
  try {
    printed = JSON.parse(output) as Printed;
  } catch {
    // What it printed may hold a secret, so it is not quoted.
    throw failure("did not print JSON");
  }
  if (printed.kind !== "ExecCredential" || printed.apiVersion !== exec.apiVersion) {
    throw failure(`did not print an ExecCredential of ${exec.apiVersion}`);
  }
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = printed.status ?? {};
  if (!token && !(clientCertificateData && clientKeyData)) {
    throw failure("printed neither a token nor a client certificate with its key");
  }
  const expiresAt = expirationTimestamp ? Date.parse(expirationTimestamp) : Infinity;
  if (Number.isNaN(expiresAt))
    throw failure("printed an expirationTimestamp that is not a valid time");
  return {
    expiresAt,
    credential: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(clientCertificateData && clientKeyData
        ? { clientCertificate: clientCertificateData, clientKey: clientKeyData }
        : {}),
    },
  };
}

function print(exec: ExecConfig, cluster: ClusterConfig): Promise<string> {
  const info = {
    kind: "ExecCredential",
    apiVersion: exec.apiVersion,
    spec: { interactive: false, ...(exec.provideClusterInfo ? { cluster: infoOf(cluster) } : {}) },
  };
  // As in client-go: a command with a slash is found from its kubeconfig, others on the PATH.
  const { command } = exec;
  const file = command.includes("/") ? resolve(exec.directory, command) : command;
  const env = { ...process.env, ...exec.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  return new Promise((done, reject) => {
    const options = {
      env,
      timeout: timeoutMs,
      maxBuffer: maxOutputBytes,
      encoding: "utf8" as const,
    };
    execFile(file, exec.args, options, (error, stdout, stderr) => {
      if (!error) return done(stdout);
      const missing = error.code === "ENOENT";
      const hint = missing && exec.installHint ? `; ${exec.installHint.trim()}` : "";
      const why = missing
        ? "command not found"
        : error.killed
          ? `it exceeded its time limit (${timeoutMs} ms)`
          : `it failed with ${error.code ?? error.signal}: ${stderr.trim().slice(-500)}`;
      reject(new Error(`running ${command}: ${why}${hint}`));
    });
  });
}

function infoOf(cluster: ClusterConfig): Record<string, unknown> {
  const { certificateAuthority } = cluster;
  return {
    server: cluster.server,
    ...(cluster.tlsServerName ? { "tls-server-name": cluster.tlsServerName } : {}),
    ...(cluster.insecureSkipTlsVerify ? { "insecure-skip-tls-verify": true } : {}),
    ...(certificateAuthority
      ? { "certificate-authority-data": Buffer.from(certificateAuthority).toString("base64") }
      : {}),
  };
}
