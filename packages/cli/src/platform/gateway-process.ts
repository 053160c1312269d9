/**
 * The gateway is a process of its own: control-plane work never delays a request, and requests go on
 * being answered while the control plane restarts. It therefore outlives a crash of the platform;
 * the next start adopts it when it still fits, and replaces it otherwise.
 *
 * None is ever left behind unseen: it is written down as soon as it has a process number, long before it is ready, and
 * one whose platform has ended before it could be written down finds nobody to report to, and ends (gateway-main.ts).
 */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import path from "node:path";
import { type Readable } from "node:stream";
import { type Logger } from "@spry/kube";
import { type EventingSettings, eventingVariable } from "../gateway-eventing.ts";
import { gatewayProgram, nodeOptions } from "../programs.ts";
import { UserError } from "../user-error.ts";
import { countsTokenVariable } from "./counts-token.ts";
import { readJson, writeAtomically } from "./data-dir.ts";
import { identify, isAlive, type ProcessIdentity, signal } from "./process-identity.ts";

export interface GatewayOptions {
  dataDir: string;
  logFile: string;
  kubeconfig: string;
  /** What its counts are read with (counts-token.ts). */
  countsTokenFile: string;
  host: string;
  /** 0 picks a free port. */
  port: number;
  /** The same for HTTPS; `orFree`: another one will do if it is taken. */
  https?: { port: number; orFree: boolean };
  /** Events, in the same process. */
  eventing?: EventingSettings;
  /** Addresses and blocks at which it listens for callers among the Pods (ADR 0018). */
  callerAddresses: readonly string[];
  /** Changes whenever a running gateway no longer fits: version, API server's address. */
  fingerprint: string;
  log: Logger;
}

export interface GatewayProcess {
  readonly port: number;
  readonly httpsPort: number;
  /** At which events are published. */
  readonly publisherPort: number;
  /** Of the administration of events. */
  readonly eventsPort: number;
  /** Of `/metrics`, `/healthz` and `/readyz`; another one after the gateway ended unexpectedly. */
  readonly adminPort: number;
  /** Ends the gateway after the requests under way, or after a few seconds. */
  stop(): Promise<void>;
}

interface Ports {
  port: number;
  httpsPort: number;
  publisherPort: number;
  eventsPort: number;
  adminPort: number;
}

/** Ports are 0 until it has reported them. */
interface Running extends ProcessIdentity, Ports {
  fingerprint: string;
}

const stateName = "gateway.json";
const startTimeoutMs = 20_000;
const drainMs = 5_000;
const restartPauseMs = 500;
const watchIntervalMs = 1_000;

export async function startGatewayProcess(options: GatewayOptions): Promise<GatewayProcess> {
  const stateFile = path.join(options.dataDir, stateName);
  let stopping = false;
  let running = (await adopt(stateFile, options)) ?? (await start(stateFile, options));
  const { port, httpsPort, publisherPort, eventsPort } = running;
  const same = samePorts(options, running);
  // A gateway that was adopted is not a child of this process: polling is the only way to learn of its end.
  const watch = setInterval(() => {
    if (stopping || isAlive(running)) return;
    options.log.error({ pid: running.pid }, "the gateway ended unexpectedly, restarting it");
    stopping = true;
    setTimeout(() => {
      start(stateFile, { ...options, ...same })
        .then((next) => (running = next))
        .catch((error: unknown) => options.log.error({ error }, "restarting the gateway failed"))
        .finally(() => (stopping = false));
    }, restartPauseMs);
  }, watchIntervalMs);
  watch.unref();
  return {
    port,
    httpsPort,
    publisherPort,
    eventsPort,
    get adminPort() {
      return running.adminPort;
    },
    async stop() {
      stopping = true;
      clearInterval(watch);
      await end(running);
    },
  };
}

/** A restarted process listens on the same ports. */
function samePorts({ eventing }: GatewayOptions, ports: Ports) {
  const { port, httpsPort, publisherPort, eventsPort } = ports;
  return {
    port,
    https: { port: httpsPort, orFree: false },
    ...(eventing && {
      eventing: { ...eventing, port: publisherPort, orFree: false, adminPort: eventsPort },
    }),
  };
}

async function adopt(stateFile: string, options: GatewayOptions): Promise<Running | undefined> {
  const running = readJson<Running>(stateFile);
  if (!running || !isAlive(running)) return undefined;
  const fits = running.fingerprint === options.fingerprint && running.adminPort > 0;
  const { port, https, eventing } = options;
  const isPort = port === 0 || port === running.port;
  const isHttpsPort =
    !https || https.orFree || https.port === 0 || https.port === running.httpsPort;
  const isPublisherPort =
    !eventing || eventing.orFree || [0, running.publisherPort].includes(eventing.port);
  const hasAll = running.httpsPort > 0 && (!eventing || running.publisherPort > 0);
  if (fits && isPort && isHttpsPort && isPublisherPort && hasAll) return running;
  await end(running);
  return undefined;
}

async function start(stateFile: string, options: GatewayOptions): Promise<Running> {
  const log = openSync(options.logFile, "a", 0o600);
  const args = [
    ...nodeOptions,
    gatewayProgram(),
    options.kubeconfig,
    options.host,
    String(options.port),
    options.https ? `${options.https.port}${options.https.orFree ? "?" : ""}` : "0",
    ...options.callerAddresses,
  ];
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", log, log, "pipe"],
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      [countsTokenVariable]: options.countsTokenFile,
      ...(options.eventing && { [eventingVariable]: JSON.stringify(options.eventing) }),
    },
  });
  closeSync(log);
  child.once("error", (error) => child.stdio[3]?.destroy(error));
  child.unref();
  const record = { ...identify(child.pid ?? 0), fingerprint: options.fingerprint };
  const write = (running: Running) => {
    writeAtomically(stateFile, JSON.stringify(running), 0o600);
    return running;
  };
  const starting = write({
    ...record,
    port: 0,
    httpsPort: 0,
    publisherPort: 0,
    eventsPort: 0,
    adminPort: 0,
  });
  try {
    return write({ ...record, ...(await reportedPorts(child.stdio[3] as Readable, options)) });
  } catch (error) {
    await end(starting);
    throw error;
  }
}

/** The child says `ready <port> <admin port> <port of HTTPS> <publisher's> <port of its administration>` or `error <message>` on descriptor 3. */
function reportedPorts(pipe: Readable, options: GatewayOptions): Promise<Ports> {
  return new Promise((resolve, reject) => {
    let text = "";
    const fail = (why: string) =>
      reject(new UserError(`the gateway did not start: ${why}`, `see ${options.logFile}`));
    const timer = setTimeout(
      () => fail(`it did not report that it is ready within ${startTimeoutMs / 1000} s`),
      startTimeoutMs,
    );
    pipe.setEncoding("utf8");
    pipe.on("data", (chunk: string) => {
      text += chunk;
      if (!text.includes("\n")) return;
      clearTimeout(timer);
      const [word, ...rest] = text.trim().split(" ");
      const [port = 0, adminPort = 0, httpsPort = 0, ...events] = rest.map(Number);
      const [publisherPort = 0, eventsPort = 0] = events;
      if (word === "ready") resolve({ port, adminPort, httpsPort, publisherPort, eventsPort });
      else fail(rest.join(" "));
      pipe.destroy();
    });
    pipe.on("error", (error) => fail(error.message));
    pipe.on("end", () => {
      clearTimeout(timer);
      fail("it ended during its start");
    });
  });
}

/** Ends the gateway of this data directory, if one is running. */
export async function endGateway(dataDir: string): Promise<void> {
  const running = readJson<Running>(path.join(dataDir, stateName));
  if (running) await end(running);
}

async function end(running: ProcessIdentity): Promise<void> {
  if (!signal(running, "SIGTERM")) return;
  const deadline = performance.now() + drainMs;
  while (isAlive(running)) {
    if (performance.now() > deadline) {
      signal(running, "SIGKILL");
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
