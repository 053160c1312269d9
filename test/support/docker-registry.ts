/** Debian's docker-registry, on loopback for the most part: a registry that is not our own. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { endChild, freePort, hasEnded } from "@spry/test-kit";
import { hash } from "bcryptjs";
import { pause } from "./platform.ts";

export const hasDockerRegistry = spawnSync("docker-registry", ["--version"]).status === 0;

export interface DockerRegistry {
  /** `127.0.0.1:<port>`, or at the address that was asked for. */
  host: string;
  /** With TLS: the authority that signed its certificate, PEM. */
  ca: string;
  stop(): Promise<void>;
}

export async function startDockerRegistry(options: {
  username: string;
  password: string;
  tls?: boolean;
  port?: number;
  /** Of this machine. */
  address?: string;
}): Promise<DockerRegistry> {
  const dir = mkdtempSync(path.join(tmpdir(), "docker-registry-"));
  const at = (name: string) => path.join(dir, name);
  writeFileSync(at("htpasswd"), `${options.username}:${await hash(options.password, 5)}\n`);
  const { address = "127.0.0.1" } = options;
  const tls = options.tls ? certificate(dir, address) : undefined;
  const port = options.port ?? (await freePort());
  const config = {
    version: 0.1,
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: at("data") }, delete: { enabled: true } },
    auth: { htpasswd: { realm: "test", path: at("htpasswd") } },
    http: {
      addr: `${address}:${port}`,
      secret: "shared by nobody",
      ...(tls ? { tls: { certificate: tls.cert, key: tls.key } } : {}),
    },
  };
  // JSON is YAML.
  writeFileSync(at("config.yml"), JSON.stringify(config));
  const child = spawn("docker-registry", ["serve", at("config.yml")], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], OTEL_TRACES_EXPORTER: "none" },
  });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  for (let attempt = 0; !(await isListening(port, address)); attempt++) {
    if (hasEnded(child) || attempt > 400)
      throw new Error(`docker-registry did not start:\n${output}`);
    await pause(25);
  }
  return {
    host: `${address}:${port}`,
    ca: tls ? readFileSync(tls.ca, "utf8") : "",
    async stop() {
      await endChild(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** An authority of its own, and a certificate for the address that it signed. */
function certificate(dir: string, address: string): { ca: string; cert: string; key: string } {
  mkdirSync(path.join(dir, "pki"));
  const at = (name: string) => path.join(dir, "pki", name);
  const openssl = (command: string) =>
    execFileSync("openssl", command.split(" "), { stdio: "ignore", cwd: path.join(dir, "pki") });
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
  openssl(`req -x509 ${key} -subj /CN=authority -days 2 -keyout ca.key -out ca.crt`);
  openssl(`req ${key} -subj /CN=registry -keyout tls.key -out tls.csr`);
  writeFileSync(at("san"), `subjectAltName=IP:${address}`);
  openssl("x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -days 2 -extfile san -out tls.crt");
  return { ca: at("ca.crt"), cert: at("tls.crt"), key: at("tls.key") };
}

async function isListening(port: number, address: string): Promise<boolean> {
  const { connect } = await import("node:net");
  return new Promise((resolve) => {
    const socket = connect(port, address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
