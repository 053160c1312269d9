/**
 * The gateway is a process of its own: control-plane work never delays a request, and requests go on
 * being answered while the control plane restarts. It therefore outlives a crash of the platform;
 * the next start adopts it when it still fits, and replaces it otherwise.
 *
 * None is ever left behind unseen: it is written down as soon as it has a process number, long before it is ready, and
 * one whose platform has ended before it could be written down finds nobody to report to, and ends (gateway-main.ts).
 */
import { closeSync, openSync } from "node:fs";
import path from "node:path";
import { type Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import {
  type HostPort,
  identify,
  lifeOf,
  type Logger,
  messageOf,
  type ProcessIdentity,
  readIdentity,
  readStat,
  signalIdentity,
  startProgram,
  type StartedProgram,
} from "@spry/kube";
import { type EventingSettings, eventingVariable } from "../gateway-eventing.ts";
import { gatewayProgram, nodeOptions } from "../programs.ts";
import { UserError } from "../user-error.ts";
import { allowedLoopbackVariable } from "./allowed-loopback.ts";
import { readJson, writeAtomically } from "./data-dir.ts";
import { countsTokenFile, countsTokenVariable, metricsTokenVariable } from "./token-files.ts";

export interface GatewayOptions {
  dataDir: string;
  logFile: string;
  kubeconfig: string;
  /** What its counts and its metrics are read with (token-files.ts). */
  countsTokenFile: string;
  metricsTokenFile: string;
  host: string;
  /** 0 picks a free port. */
  port: number;
  /** The same for HTTPS; `orFree`: another one will do if it is taken. */
  https?: { port: number; orFree: boolean };
  /** Of its metrics, health and counts; 0 picks a free port. */
  adminPort: number;
  /** Events, in the same process. */
  eventing?: EventingSettings;
  /** Addresses and blocks at which it listens for callers among the Pods (ADR 0018). */
  callerAddresses: readonly string[];
  /** See `PlatformOptions`. */
  allowedLoopback: readonly HostPort[];
  /** Changes whenever a running gateway no longer fits: version, API server's address. */
  fingerprint: string;
  /** Called before each start with the ports that it is to have: who else has them. */
  freePorts?: (ports: readonly number[]) => Promise<void>;
  log: Logger;
}

export interface GatewayProcess {
  readonly port: number;
  readonly httpsPort: number;
  /** At which events are published. */
  readonly publisherPort: number;
  /** Of the administration of events. */
  readonly eventsPort: number;
  /** Of `/metrics`, `/healthz` and `/readyz`; unless it is fixed, another one after the gateway ended unexpectedly. */
  readonly adminPort: number;
  /** Of its process; another one then, too. */
  readonly pid: number;
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
const maxRestartPauseMs = 30_000;
/** Soon: until the next one listens, a Pod can take its ports (own-ports.ts). */
const watchIntervalMs = 100;
/** One that has run for so long is started again without a pause. */
const steadyMs = 10_000;

export async function startGatewayProcess(options: GatewayOptions): Promise<GatewayProcess> {
  const stateFile = path.join(options.dataDir, stateName);
  const adopted = await adopt(stateFile, options);
  await endStrays(options.dataDir, adopted);
  let own: ProcessIdentity | undefined = adopted;
  const remember = (started: ProcessIdentity) => (own = started);
  let running = adopted ?? (await start(stateFile, options, remember));
  const { port, httpsPort, publisherPort, eventsPort } = running;
  const same = { ...options, ...samePorts(options, running) };
  const stopping = new AbortController();
  const watching = keepRunning({
    isDead: () => own === undefined || lifeOf(own) === "dead",
    restart: async () => {
      running = await start(stateFile, same, remember);
    },
    log: options.log,
    signal: stopping.signal,
  });
  return {
    port,
    httpsPort,
    publisherPort,
    eventsPort,
    get adminPort() {
      return running.adminPort;
    },
    get pid() {
      return running.pid;
    },
    async stop() {
      stopping.abort();
      if (own) await end(own);
      await watching;
    },
  };
}

/**
 * A gateway that was adopted is not a child of this process: polling is the only way to learn of its end. One that cannot be started is
 * tried again and again, each time after a longer pause: the machine may lack processes, memory or descriptors for a while.
 */
async function keepRunning(gateway: {
  isDead: () => boolean;
  restart: () => Promise<void>;
  log: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { isDead, restart, log, signal } = gateway;
  // Also when the pause is cut short.
  const pause = (ms: number) => setTimeout(ms, undefined, { ref: false, signal }).catch(() => {});
  let startedAt = -steadyMs;
  for (let failures = 0; !signal.aborted;) {
    await pause(watchIntervalMs);
    if (signal.aborted || !isDead()) continue;
    if (failures === 0) log.error({}, "the gateway ended unexpectedly, restarting it");
    if (failures > 0 || performance.now() - startedAt < steadyMs)
      await pause(Math.min(restartPauseMs * 2 ** failures, maxRestartPauseMs));
    if (signal.aborted) return;
    try {
      await restart();
      failures = 0;
      startedAt = performance.now();
    } catch (error) {
      failures = Math.min(failures + 1, 10);
      log.error({ error: messageOf(error) }, "restarting the gateway failed, trying again");
    }
  }
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
  const running = readRunning(stateFile);
  if (!running) return undefined;
  const fits = running.fingerprint === options.fingerprint && running.adminPort > 0;
  const { port, https, eventing } = options;
  const isPort = port === 0 || port === running.port;
  const isHttpsPort =
    !https || https.orFree || https.port === 0 || https.port === running.httpsPort;
  const isPublisherPort =
    !eventing || eventing.orFree || [0, running.publisherPort].includes(eventing.port);
  const isAdminPort = [0, running.adminPort].includes(options.adminPort);
  const hasAll = running.httpsPort > 0 && (!eventing || running.publisherPort > 0);
  const isAlive = lifeOf(running) === "alive";
  if (isAlive && fits && isPort && isHttpsPort && isPublisherPort && isAdminPort && hasAll)
    return running;
  await end(running);
  return undefined;
}

/** What the file says, if it names a process that may be ended. Ports that are none are 0, and fit nowhere. */
function readRunning(stateFile: string): Running | undefined {
  const found = readJson<Partial<Running>>(stateFile);
  const identity = readIdentity(found);
  if (!identity || [process.pid, process.ppid].includes(identity.pid)) return undefined;
  const portOf = (value: unknown) =>
    Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_536
      ? (value as number)
      : 0;
  return {
    ...identity,
    fingerprint: String(found?.fingerprint),
    port: portOf(found?.port),
    httpsPort: portOf(found?.httpsPort),
    publisherPort: portOf(found?.publisherPort),
    eventsPort: portOf(found?.eventsPort),
    adminPort: portOf(found?.adminPort),
  };
}

async function start(
  stateFile: string,
  options: GatewayOptions,
  remember: (started: ProcessIdentity) => void,
): Promise<Running> {
  const { port, https, eventing } = options;
  const ports = [port, https?.port, eventing?.port, eventing?.adminPort];
  await options.freePorts?.(ports.filter((each) => each !== undefined));
  const child = await startChild(options);
  const record = { ...identify(child.pid), fingerprint: options.fingerprint };
  remember(record);
  const write = (running: Running) => {
    writeAtomically(stateFile, JSON.stringify(running), 0o600);
    return running;
  };
  try {
    write({ ...record, port: 0, httpsPort: 0, publisherPort: 0, eventsPort: 0, adminPort: 0 });
    return write({ ...record, ...(await reportedPorts(child.stdio[3] as Readable, options)) });
  } catch (error) {
    await end(record);
    throw error;
  }
}

async function startChild(options: GatewayOptions): Promise<StartedProgram> {
  const args = [
    ...nodeOptions,
    gatewayProgram(),
    options.kubeconfig,
    options.host,
    String(options.port),
    options.https ? `${options.https.port}${options.https.orFree ? "?" : ""}` : "0",
    String(options.adminPort),
    ...options.callerAddresses,
  ];
  const log = openSync(options.logFile, "a", 0o600);
  try {
    const child = await startProgram(process.execPath, args, {
      detached: true,
      stdio: ["ignore", log, log, "pipe"],
      env: {
        PATH: process.env["PATH"],
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        [countsTokenVariable]: options.countsTokenFile,
        [metricsTokenVariable]: options.metricsTokenFile,
        [allowedLoopbackVariable]: JSON.stringify(options.allowedLoopback),
        ...(options.eventing && { [eventingVariable]: JSON.stringify(options.eventing) }),
      },
    });
    // Of a signal that could not be sent.
    child.on("error", () => {}).unref();
    return child;
  } catch (error) {
    throw new UserError(
      `the gateway did not start: ${messageOf(error)}`,
      "raise the limit, or end what uses it up",
      { cause: error },
    );
  } finally {
    closeSync(log);
  }
}

/** The child says `ready <port> <admin port> <port of HTTPS> <publisher's> <port of its administration>` or `error <message>` on descriptor 3. */
function reportedPorts(pipe: Readable, options: GatewayOptions): Promise<Ports> {
  return new Promise((resolve, reject) => {
    let text = "";
    const fail = (why: string) =>
      reject(new UserError(`the gateway did not start: ${why}`, `see ${options.logFile}`));
    const timer = globalThis.setTimeout(
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
    pipe.on("error", (error) => {
      clearTimeout(timer);
      fail(error.message);
    });
    pipe.on("end", () => {
      clearTimeout(timer);
      fail("it ended during its start");
    });
  });
}

/** The gateway of this data directory, if one is running. */
export function gatewayOf(dataDir: string): ProcessIdentity | undefined {
  const running = readRunning(path.join(dataDir, stateName));
  return running && lifeOf(running) === "alive" ? running : undefined;
}

/** Ends the gateway of this data directory, if one is running. */
export async function endGateway(dataDir: string): Promise<void> {
  const running = readRunning(path.join(dataDir, stateName));
  if (running) await end(running);
  await endStrays(dataDir);
}

/** Ends gateways of this data directory that no file names any more: they would keep their ports for ever. */
async function endStrays(dataDir: string, known?: ProcessIdentity): Promise<void> {
  const own = `${countsTokenVariable}=${countsTokenFile(dataDir)}`;
  // Not loaded by commands that only look for the gateway.
  const { findByEnvironment } = await import("@spry/machine");
  for (const { pid, value } of await findByEnvironment(own)) {
    if (value !== "" || pid === known?.pid || pid === process.ppid) continue;
    // It may have ended meanwhile.
    if (readStat(pid)) await end(identify(pid));
  }
}

/** Resolves when it has ended, or does not end for longer than it may take. */
async function end(running: ProcessIdentity): Promise<void> {
  const begin = performance.now();
  let isSignalled = false;
  for (let takenMs = 0; takenMs < 2 * drainMs; takenMs = performance.now() - begin) {
    if (lifeOf(running) === "dead") return;
    if (takenMs > drainMs) signalIdentity(running, "SIGKILL");
    else isSignalled ||= signalIdentity(running, "SIGTERM");
    await setTimeout(20);
  }
}
