import { readFileSync, rmSync } from "node:fs";
import { totalmem } from "node:os";
import path from "node:path";
import { load } from "js-yaml";
import { heapFor } from "@spry/apiserver";
import { type Function, functions } from "@spry/function";
import { type HostPort, isNotFound, parseHostPort, quantityValue } from "@spry/kube";
import { urlOf } from "../connection.ts";
import { followUntilRunning } from "../follow.ts";
import { createLogger } from "../logger.ts";
import { type EndSignal, exitCodeOf, untilInterrupted } from "../interruption.ts";
import { openLogin } from "../open-browser.ts";
import { verifyAll } from "./doctor.ts";
import { openDataDir, writeAtomically } from "../platform/data-dir.ts";
import { assertDescriptors } from "../platform/descriptors.ts";
import { diskProblem } from "../platform/disk-problem.ts";
import { type Platform, startPlatform } from "../platform/platform.ts";
import { type PodSecurityLevel } from "../pod-security-levels.ts";
import { type SandboxKind } from "../sandbox-kinds.ts";
import { silentProgress } from "../progress.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { Ticker } from "../ticker.ts";
import { UserError } from "../user-error.ts";
import { shellWord } from "../shell-word.ts";
import { version } from "../version.ts";
import { spryCommand } from "../shown-command.ts";

export interface UpOptions {
  dataDir: string;
  apiPort: number;
  gatewayPort: number;
  httpsPort?: number;
  publisherPort?: number;
  webhookPort: number;
  registryPort: number;
  /** What the registry may hold: a Kubernetes quantity. */
  registryQuota: string;
  /** What all Kubernetes objects may take: a Kubernetes quantity. */
  storeQuota?: string;
  dashboardPort?: number;
  /** Besides the names of loopback. */
  dashboardHost?: readonly string[];
  metricsPort: number;
  gatewayMetricsPort: number;
  /** As they were written. */
  allowLoopback?: readonly string[];
  sandbox: SandboxKind;
  /** Of namespaces that have no label for it. */
  podSecurity: PodSecurityLevel;
  /** How many warm processes may wait. */
  warm: number;
  /** False: Functions are left to another controller, which brings their definitions. */
  controller: boolean;
  example: boolean;
  /** Open the dashboard in the browser. */
  open?: boolean;
  /** Check the whole data directory before anything is started. */
  verify?: boolean;
}

const exampleFile = path.resolve(import.meta.dirname, "../../../../examples/hello/function.yaml");
const exampleTimeoutMs = 120_000;

/** Runs the platform until SIGINT, which ends with 130, or SIGTERM, which supervisors send and which ends with 0. */
export async function up(options: UpOptions): Promise<void> {
  const signal = await runPlatform(options);
  // Whatever a library keeps open must not hold a platform that has ended in good order.
  process.exit(signal === "SIGTERM" ? 0 : exitCodeOf(signal));
}

async function runPlatform(options: UpOptions): Promise<EndSignal> {
  const begin = performance.now();
  const registryQuota = bytesOf(options.registryQuota);
  const allowedLoopback = (options.allowLoopback ?? []).map(hostPortOf);
  const storeQuota = storeQuotaOf(options.storeQuota);
  assertDescriptors();
  const dataDir = openDataDir(path.resolve(options.dataDir));
  rmSync(dataDir.endpoints, { force: true });
  const ticker = new Ticker();
  // The parts' own timers keep no process alive, and a start may wait for nothing else.
  const staysAlive = setInterval(() => {}, 60_000);
  let end: EndSignal | undefined;
  const interrupted = untilInterrupted().then((signal) => {
    ticker.stop();
    console.log("\nStopping ...");
    end = signal;
    return signal;
  });
  // Not before: Ctrl-C may come as soon as the user sees it.
  console.log(`Spry ${version}: Functions on one machine\n`);
  let platform: Platform | undefined;
  try {
    if (options.verify) {
      await Promise.race([verifyAll(dataDir, (text) => console.log(text)), interrupted]);
      if (end) return end;
    }
    const log = createLogger({ name: "spry", file: path.join(dataDir.logs, "spry.log") });
    dieLoudly(log);
    ticker.wait("  starting the platform");
    // What has begun to start is stopped once it has.
    platform = await startPlatform({
      ...options,
      registryQuota,
      storeQuota,
      allowedLoopback,
      dataDir,
      log,
    });
    ticker.stop();
    if (end) return end;
    printEndpoints(platform, options);
    ticker.wait("  starting the example");
    const started = exampleOf(platform, options, dataDir.isNew);
    const example = await Promise.race([started, interrupted.then(() => undefined)]);
    ticker.stop();
    if (end) return end;
    if (example) line("Example", example.problem ?? example.url, example.problem ? "✘" : "✔");
    writeAtomically(dataDir.endpoints, `${JSON.stringify(platform.endpoints, null, 2)}\n`);
    const login = platform.dashboardLogin();
    line("Dashboard", login);
    if (options.open)
      openLogin(login, () => line("Browser", "none could be started: open the link above", "✘"));
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    console.log(
      `\nReady after ${seconds} s. Data and logs are in ${relative(dataDir.root)}. Ctrl-C stops.`,
    );
    console.log(
      whatNext(
        relative(dataDir.kubeconfig),
        example?.problem ? undefined : example?.url,
        options.controller,
      ),
    );
    return await interrupted;
  } catch (error) {
    // Ctrl-C also reaches the programs that a start runs, and those fail then.
    if (end) return end;
    throw diskProblem(error, dataDir.root) ?? error;
  } finally {
    ticker.stop();
    rmSync(dataDir.endpoints, { force: true });
    await platform?.stop();
    dataDir.unlock();
    clearInterval(staysAlive);
  }
}

function printEndpoints(
  { endpoints, sandbox, storeProblem, takenPorts }: Platform,
  { controller }: UpOptions,
): void {
  const { apiServer, registry, gateway, gatewayTls, publisher } = endpoints;
  line("Kubernetes API", apiServer);
  line("Image registry", registry);
  line("Gateway", gateway);
  line("Exposed hosts", gatewayTls);
  line("Events", `${publisher}/publish`);
  line("Sandbox", sandbox);
  if (storeProblem)
    line(
      "Objects",
      `${storeProblem}: delete some, or raise --store-quota; nothing can be added`,
      "✘",
    );
  for (const each of takenPorts) line("Port", each, "·");
  if (!controller)
    line("Functions", "left to another controller, which brings their definitions", "·");
}

async function exampleOf(
  platform: Platform,
  { example, controller }: UpOptions,
  isNew: boolean,
): Promise<Example | undefined> {
  if (example && controller) return deployExample(platform, isNew);
  return undefined;
}

function hostPortOf(text: string): HostPort {
  const pair = parseHostPort(text);
  if (pair) return pair;
  throw new UserError(
    `${JSON.stringify(text)} is not a host and a port`,
    "--allow-loopback takes a name or an address with a port: localhost:5001, 127.0.0.1:5001, [::1]:5001",
  );
}

/** Objects are in memory: a machine that could not hold them is not to find out when it is too late. */
function storeQuotaOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const bytes = bytesOf(text);
  const [needed, there] = [heapFor(bytes), totalmem()];
  if (needed <= there) return bytes;
  const gigabytes = (value: number) => `${(value / 2 ** 30).toFixed(1)} GiB`;
  throw new UserError(
    `a store quota of ${text} needs ${gigabytes(needed)} of memory, and this machine has ${gigabytes(there)}`,
    `use at most ${Math.floor((bytes * there) / needed / 2 ** 20)}Mi`,
  );
}

function bytesOf(text: string): number {
  try {
    const value = quantityValue(text);
    if (value > 0) return value;
  } catch {
    // Said below.
  }
  throw new UserError(
    `${text} is not a valid size`,
    "use a Kubernetes quantity, such as 500Mi or 20Gi",
  );
}

/** An unexpected error is a bug: it is logged and printed, and the process ends; a restart begins from the store. */
function dieLoudly(log: { error(fields: object, message: string): void }): void {
  const die = (error: unknown) => {
    log.error({ error }, "unexpected error, ending");
    console.error("\nSpry ended because of an internal error:", error);
    process.exit(70);
  };
  process.on("uncaughtException", die);
  process.on("unhandledRejection", die);
}

interface Example {
  url: string;
  /** Why it does not run. */
  problem?: string;
}

/** Applies the example at the first start only: later it belongs to the user, who may have deleted it. */
async function deployExample(platform: Platform, isNew: boolean): Promise<Example | undefined> {
  const { client, endpoints } = platform;
  const example = load(readFileSync(exampleFile, "utf8")) as Function;
  const { name = "", namespace = "" } = example.metadata;
  const stored = isNew
    ? await client.apply(functions, example, { fieldManager: "spry-cli" })
    : await client.get(functions, { namespace, name }).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
  if (!stored) return undefined;
  const url = urlOf(new URL(endpoints.gateway), name, namespace);
  try {
    await followUntilRunning(client, {
      name,
      namespace,
      generation: stored.metadata.generation ?? 0,
      timeoutMs: exampleTimeoutMs,
      progress: silentProgress,
    });
    await answered(url);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { url, problem: error.message };
  }
  return { url };
}

/** The gateway learns of a Pod a moment after the Function's status does. */
async function answered(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const deadline = performance.now() + 15_000;
  const { request } = await import("node:http");
  for (;;) {
    const status = await new Promise<number>((resolve) => {
      const call = request({ host: "127.0.0.1", port, headers: { host: hostname } }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      });
      call.on("error", () => resolve(0));
      call.end();
    });
    if (status === 200) return;
    if (performance.now() > deadline)
      throw new UserError(`the example does not respond at ${url} (HTTP ${status})`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Broken where the terminal ends, below the text's first line. */
function line(label: string, text: string, mark = "✔"): void {
  const columns = columnsOf(process.stdout);
  const start = `  ${mark} ${label.padEnd(14)} `;
  const lines = wrapped(text, columns && columns - start.length);
  console.log(start + lines.replaceAll("\n", `\n${" ".repeat(start.length)}`));
}

function relative(file: string): string {
  const shorter = path.relative(process.cwd(), file);
  return shorter.startsWith("..") ? file : shorter;
}

function whatNext(kubeconfig: string, example: string | undefined, controller: boolean): string {
  return [
    "\nTry next, in another terminal:",
    `  export KUBECONFIG=${path.isAbsolute(kubeconfig) ? "" : '"$PWD"/'}${shellWord(kubeconfig)}`,
    ...(example ? [`  curl "${example}?name=you"`] : []),
    controller ? "  kubectl get functions,pods" : "  kubectl get pods -A",
    ...(example
      ? ["  kubectl edit function hello      # change the code, save, and curl again"]
      : []),
    ...(controller
      ? [
          `  ${spryCommand("init dice")} && ${spryCommand("deploy dice")}   # one of your own`,
          `  ${spryCommand("--help").padEnd(31)}  # init, dev, deploy, get, logs -f, delete`,
        ]
      : []),
  ].join("\n");
}
