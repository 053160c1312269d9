import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type ApiServer, type ApiServerOptions, createApiServer } from "@spry/apiserver";
import { KubeClient } from "@spry/kube";

/** An API server on TLS with an administrator's kubeconfig, and real clients to point at it. */
export interface Harness {
  server: ApiServer;
  client: KubeClient;
  url: string;
  directory: string;
  kubeconfig: string;
  /** Runs kubectl; rejects with its stderr when it fails. */
  kubectl(...args: string[]): Promise<string>;
  /** The same with a manifest on stdin. */
  kubectlWith(
    input: string,
    ...args: string[]
  ): Promise<{ stdout: string; stderr: string; code: number }>;
  close(): Promise<void>;
}

export function hasKubectl(): boolean {
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export async function startHarness(
  options: Partial<ApiServerOptions> = {},
  users: Record<string, string> = {},
): Promise<Harness> {
  const directory = mkdtempSync(path.join(tmpdir(), "apiserver-"));
  const read = (name: string) => readFileSync(path.join(directory, name), "utf8");
  certificate(directory, "ca", "/CN=ca");
  certificate(directory, "server", "/CN=server", {
    ca: "ca",
    names: "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost",
  });
  certificate(directory, "admin", "/O=system:masters/CN=admin", { ca: "ca" });
  for (const [name, subject] of Object.entries(users))
    certificate(directory, name, subject, { ca: "ca" });
  const server = await createApiServer({ dataDir: ":memory:", ...options });
  const { port } = await server.listen({
    host: "127.0.0.1",
    port: 0,
    cert: read("server.crt"),
    key: read("server.key"),
    clientCa: read("ca.crt"),
  });
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = path.join(directory, "kubeconfig");
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(url, directory)));
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: directory,
    KUBECONFIG: kubeconfig,
    EDITOR: path.join(directory, "editor"),
  };
  const run = promisify(execFile);
  return {
    server,
    client: new KubeClient(server.transport()),
    url,
    directory,
    kubeconfig,
    async kubectl(...args) {
      const { stdout } = await run("kubectl", args, {
        env: environment,
        timeout: 30_000,
        maxBuffer: 1e8,
      });
      return stdout;
    },
    kubectlWith(input, ...args) {
      return new Promise((resolve, reject) => {
        const child = spawn("kubectl", args, { env: environment, timeout: 30_000 });
        let stdout = "";
        let stderr = "";
        child.stdout.on("data", (chunk) => (stdout += chunk));
        child.stderr.on("data", (chunk) => (stderr += chunk));
        child.on("error", reject);
        child.on("close", (code) => resolve({ stdout, stderr, code: code ?? -1 }));
        child.stdin.end(input);
      });
    },
    async close() {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function kubeconfigOf(server: string, directory: string): object {
  const file = (name: string) => path.join(directory, name);
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster: { server, "certificate-authority": file("ca.crt") } }],
    users: [
      {
        name: "admin",
        user: { "client-certificate": file("admin.crt"), "client-key": file("admin.key") },
      },
    ],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
  };
}

/** `<name>.key` and `<name>.crt`, signed by a CA made before or by itself. */
export function certificate(
  directory: string,
  name: string,
  subject: string,
  { ca, names }: { ca?: string; names?: string } = {},
): void {
  const file = (each: string) => path.join(directory, each);
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  args.push(
    "-days",
    "2",
    "-subj",
    subject,
    "-keyout",
    file(`${name}.key`),
    "-out",
    file(`${name}.crt`),
  );
  if (ca)
    args.push(
      "-CA",
      file(`${ca}.crt`),
      "-CAkey",
      file(`${ca}.key`),
      "-addext",
      "basicConstraints=critical,CA:FALSE",
    );
  if (names) args.push("-addext", `subjectAltName=${names}`);
  execFileSync("openssl", args, { stdio: "ignore" });
}
