/** A whole platform for tests and benchmarks: the real process, on free ports, in a directory of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { filesBelow } from "./files-below.ts";
import { hostAddress } from "./host-address.ts";
import { useTemplate } from "./platform-template.ts";
import { type Answer, call, type CallOptions, callUntil } from "./calls.ts";

export const root = path.resolve(import.meta.dirname, "../..");
/** The command as a person starts it from a checkout; on this Node.js it becomes the platform, with the same pid. */
const main = path.join(root, "packages/cli/bin/spry.mjs");

export interface StartOptions {
  dataDir?: string;
  /** Starts as the first time on a machine, never from a template. */
  isFirst?: boolean;
  /** Another checkout than this one, of an earlier version. */
  checkout?: string;
  args?: string[];
  env?: NodeJS.ProcessEnv;
  /** Of the user and the group that it runs as; its data directory must be theirs. */
  uid?: number;
  /** A program, with arguments, that becomes the platform with other rights (`setpriv …`). */
  prefix?: [program: string, ...args: string[]];
}

export class Platform {
  readonly dataDir: string;
  readonly #options: StartOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #isPrepared = false;
  output = "";

  constructor(options: StartOptions = {}) {
    this.#options = options;
    this.dataDir = options.dataDir ?? mkdtempSync(path.join(tmpdir(), "spry-"));
  }

  /** Starts it and resolves, with the milliseconds that took, once it says that it is ready. */
  async start(): Promise<number> {
    if (!this.#isPrepared) useTemplate(this.dataDir, this.#options);
    this.#isPrepared = true;
    const begin = performance.now();
    rmSync(path.join(this.dataDir, "endpoints.json"), { force: true });
    const { args = ["--no-example"], uid, checkout = root } = this.#options;
    const [program = "", ...before] = [...(this.#options.prefix ?? []), process.execPath];
    const child = spawn(
      program,
      [
        ...before,
        path.join(checkout, "packages/cli/bin/spry.mjs"),
        "up",
        "--data-dir",
        this.dataDir,
        "--api-port=0",
        "--gateway-port=0",
        "--https-port=0",
        "--publisher-port=0",
        "--registry-port=0",
        ...(checkout === root ? ["--dashboard-port=0"] : []),
        ...sandboxArguments(),
        ...args,
      ],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...cleanEnvironment(), ...this.#options.env },
        ...(uid !== undefined && { uid, gid: uid }),
      },
    );
    this.#child = child;
    this.output = "";
    child.stdout.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    let ended = false;
    this.#exited = new Promise((resolve) => {
      child.on("exit", () => {
        ended = true;
        resolve();
      });
    });
    let took: number | undefined;
    // What it prints arrives a moment after the file: from here on `output` is whole.
    while (took === undefined || !this.output.includes("Ctrl-C stops")) {
      if (ended) throw new Error(`the platform ended at its start:\n${this.output}`);
      if (performance.now() - begin > 100_000)
        throw new Error(`no start within 100 s:\n${this.output}`);
      if (took === undefined && existsSync(path.join(this.dataDir, "endpoints.json")))
        took = performance.now() - begin;
      else await pause(10);
    }
    return took;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get endpoints(): {
    apiServer: string;
    gateway: string;
    gatewayTls: string;
    registry: string;
    publisher: string;
    events: string;
    webhooks: string;
    metrics: string;
    gatewayMetrics: string;
    dashboard: string;
    pid: number;
  } {
    return JSON.parse(readFileSync(path.join(this.dataDir, "endpoints.json"), "utf8"));
  }

  /** The controllers' or the gateway's metrics, read with the token of the data directory. */
  async metrics(of: "metrics" | "gatewayMetrics" = "metrics"): Promise<string> {
    const token = readFileSync(path.join(this.dataDir, "metrics.token"), "utf8");
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${this.endpoints[of]}/metrics`, { headers });
    return response.text();
  }

  get gateway(): URL {
    return new URL(this.endpoints.gateway);
  }

  get dashboard(): string {
    return this.endpoints.dashboard;
  }

  get gatewayTls(): URL {
    return new URL(this.endpoints.gatewayTls);
  }

  get webhooks(): string {
    return this.endpoints.webhooks;
  }

  /** This machine, as Pods see it. */
  get hostAddress(): string {
    return hostAddress();
  }

  /** Of the platform's own programs. */
  async log(): Promise<string> {
    return this.output;
  }

  registryDirectory(): string {
    return path.join(this.dataDir, "registry");
  }

  registryFiles(): string[] {
    return filesBelow(this.registryDirectory());
  }

  /** What is on disk because of Pods. */
  podFiles(): string[] {
    return ["node", "logs"].flatMap((room) => filesBelow(path.join(this.dataDir, room)));
  }

  get kubeconfig(): string {
    return path.join(this.dataDir, "kubeconfig");
  }

  /** As Ctrl-C does. */
  async stop(): Promise<void> {
    this.#child?.kill("SIGINT");
    await this.#exited;
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#exited;
  }

  /** Without a word, and back again. */
  async crash(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  kubectl(
    args: string[],
    input?: string,
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    return run("kubectl", ["--kubeconfig", this.kubeconfig, ...args], input);
  }

  /** kubectl that has to work; returns what it printed. */
  async k(command: string, input?: string): Promise<string> {
    const result = await this.kubectl(command.split(" "), input);
    if (result.code !== 0) throw new Error(`kubectl ${command}: ${result.stderr}${result.stdout}`);
    return result.stdout;
  }

  spry(args: string[], input?: string): Promise<{ code: number; stdout: string; stderr: string }> {
    return run(process.execPath, [main, "--kubeconfig", this.kubeconfig, ...args], input);
  }

  /** A request to `<name>.<namespace>.localhost` through the gateway. */
  call(host: string, options: CallOptions = {}): Promise<Answer> {
    return call(new URL(this.endpoints.gateway).port, `${host}.localhost`, options);
  }

  /** Calls until the answer fits. */
  callUntil(
    host: string,
    fits: (answer: Answer) => boolean,
    options: { path?: string; timeoutMs?: number } = {},
  ): Promise<Answer> {
    return callUntil(() => this.call(host, options), fits, options.timeoutMs);
  }
}

/** `SPRY_TEST_SANDBOX` names the sandbox of every test of a whole platform; without it, the platform chooses. */
function sandboxArguments(): string[] {
  const kind = process.env["SPRY_TEST_SANDBOX"];
  return kind ? [`--sandbox=${kind}`] : [];
}

export function run(
  file: string,
  args: string[],
  input?: string,
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env: { ...cleanEnvironment(), HOME: tmpdir() } });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, stdout, stderr }));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

export function cleanEnvironment(): NodeJS.ProcessEnv {
  const {
    NODE_EXTRA_CA_CERTS: _slow,
    NODE_OPTIONS: _options,
    KUBECONFIG: _config,
    VITEST: _vitest,
    ...env
  } = process.env;
  env["NODE_COMPILE_CACHE"] = path.join(root, "node_modules", ".cache", "node");
  return env;
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** A manifest of an inline Function. */
export function functionManifest(
  name: string,
  source: string,
  spec: Record<string, unknown> & { dependencies?: string } = {},
  metadata: Record<string, unknown> = {},
): string {
  const { dependencies, ...rest } = spec;
  return JSON.stringify({
    apiVersion: "serverless.kyma-project.io/v1alpha2",
    kind: "Function",
    metadata: { name, namespace: "default", ...metadata },
    spec: {
      runtime: "nodejs24",
      source: { inline: { source, ...(dependencies !== undefined && { dependencies }) } },
      ...rest,
    },
  });
}
