import { connect } from "node:net";
import { type Clock, type Container, messageOf, type OutboundGuard, type Probe } from "@spry/kube";
import { type ExecResult } from "../sandbox/sandbox.ts";
import { probeGrpc } from "./grpc-probe.ts";
import { httpGet, type HttpGetAction, portOf } from "./http-get-action.ts";

export interface ProbeResult {
  success: boolean;
  /** Why not, in kubelet's words. */
  message: string;
}

export interface ProbeTarget {
  ip: string;
  container: Container;
  /** See `HttpGetTarget`. */
  guard?: OutboundGuard | undefined;
  exec: (argv: readonly string[], options: { timeoutMs: number }) => Promise<ExecResult>;
}

/** Tries once. Never throws. */
export async function runProbe(probe: Probe, target: ProbeTarget): Promise<ProbeResult> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000;
  try {
    if (probe.httpGet) return await probeHttp(probe.httpGet, target, timeoutMs);
    if (probe.tcpSocket) return await probeTcp(probe.tcpSocket, target, timeoutMs);
    if (probe.exec) return await probeExec(probe.exec.command ?? [], target, timeoutMs);
    if (probe.grpc) {
      const { port, service = "" } = probe.grpc;
      return await probeGrpc({ host: target.ip, port, service }, timeoutMs);
    }
    return {
      success: false,
      message: "the probe specifies none of httpGet, tcpSocket, exec and grpc",
    };
  } catch (error) {
    return { success: false, message: messageOf(error) };
  }
}

async function probeHttp(
  action: HttpGetAction,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeResult> {
  const statusCode = await httpGet(action, target, { who: "kube-probe", timeoutMs });
  const success = statusCode >= 200 && statusCode < 400;
  // Without the body: Events are read by more people than the container's answers.
  return { success, message: success ? "" : `HTTP probe failed with statuscode: ${statusCode}` };
}

function probeTcp(
  { port: named, host: chosen }: NonNullable<Probe["tcpSocket"]>,
  { ip, container, guard: ofPod }: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeResult> {
  const [host, port] = [chosen ?? ip, portOf(named, container)];
  const guard = host === ip ? undefined : ofPod;
  const refused = guard?.refusal(host, port);
  if (refused) return Promise.resolve({ success: false, message: refused.message });
  return new Promise((resolve) => {
    const lookup = guard && { lookup: guard.lookup(port) };
    const socket = connect({ host, port, timeout: timeoutMs, ...lookup });
    const end = (success: boolean, message: string) => {
      socket.destroy();
      resolve({ success, message });
    };
    socket.once("connect", () => end(true, ""));
    socket.once("timeout", () => end(false, "dial tcp: i/o timeout"));
    socket.once("error", (error) => end(false, error.message));
  });
}

async function probeExec(
  command: readonly string[],
  { exec }: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeResult> {
  const { exitCode, output } = await exec(command, { timeoutMs });
  return { success: exitCode === 0, message: output || `command exited with ${exitCode}` };
}

export interface ProbeListener {
  onStarted(): void;
  onReady(ready: boolean): void;
  /** The container is to be ended: `startup` or `liveness` failed too often. */
  onUnhealthy(kind: "startup" | "liveness", message: string): void;
  /** Each failure, for Events. */
  onFailure(kind: ProbeKind, message: string): void;
}

export type ProbeKind = "startup" | "readiness" | "liveness";

const firstTryMs = 20;
const tryGrowth = 1.5;

/**
 * The probes of one run of a container. Until the first success, startup and readiness are also
 * tried between the periods, soon at first: a period is how long a change may take to be noticed,
 * not how long a start should take. Such early tries count only when they succeed.
 */
export class ContainerProbes {
  readonly #target: ProbeTarget;
  readonly #listener: ProbeListener;
  readonly #clock: Clock;
  readonly #ending = new Set<() => void>();
  #started = false;
  #pushed = false;
  #stopped = false;

  constructor(target: ProbeTarget, listener: ProbeListener, clock: Clock) {
    this.#target = target;
    this.#listener = listener;
    this.#clock = clock;
  }

  /** `isStarted`: of a container that an earlier agent had seen started. */
  start(isStarted: boolean): void {
    const { startupProbe } = this.#target.container;
    if (!startupProbe || isStarted) this.#start();
    else this.#run("startup", startupProbe);
  }

  /** The process said itself that it is ready: startup and readiness count as passed. */
  pushReady(): void {
    if (this.#stopped) return;
    this.#pushed = true;
    if (!this.#started) this.#start();
    this.#listener.onReady(true);
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#ending) cancel();
    this.#ending.clear();
  }

  #start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#listener.onStarted();
    const { readinessProbe, livenessProbe } = this.#target.container;
    if (livenessProbe) this.#run("liveness", livenessProbe);
    if (readinessProbe) this.#run("readiness", readinessProbe);
    else this.#listener.onReady(true);
  }

  #run(kind: ProbeKind, probe: Probe): void {
    const periodMs = (probe.periodSeconds ?? 10) * 1000;
    const begin = this.#clock.elapsed() + (probe.initialDelaySeconds ?? 0) * 1000;
    const thresholds = {
      success: kind === "readiness" ? (probe.successThreshold ?? 1) : 1,
      failure: probe.failureThreshold ?? 3,
    };
    let streak = { success: false, length: 0 };
    let decided = false;
    let early = kind === "liveness" ? periodMs : firstTryMs;
    let nextPeriod = begin;

    const isOver = () => this.#stopped || (kind === "startup" && this.#started);
    const schedule = () => {
      if (isOver()) return;
      const hurry = !decided && !this.#pushed && kind !== "liveness";
      const now = this.#clock.elapsed();
      const at = hurry ? Math.min(nextPeriod, Math.max(begin, now + early)) : nextPeriod;
      early = Math.min(early * tryGrowth, periodMs);
      this.#after(at - now, () => void attempt());
    };
    const attempt = async () => {
      const isPeriodic = this.#clock.elapsed() >= nextPeriod;
      if (isPeriodic) nextPeriod = this.#clock.elapsed() + periodMs;
      const { success, message } = await runProbe(probe, this.#target);
      if (isOver()) return;
      if (success || isPeriodic) {
        streak = { success, length: streak.success === success ? streak.length + 1 : 1 };
        if (!success) this.#listener.onFailure(kind, message);
        const needed = success ? thresholds.success : thresholds.failure;
        if (streak.length >= needed) {
          if (success) decided = true;
          this.#decide(kind, success, message);
          if (!success && kind !== "readiness") return;
        }
      }
      schedule();
    };
    // The first period begins with the container; failures before the initial delay do not count.
    if (kind === "liveness") nextPeriod = Math.max(begin, this.#clock.elapsed() + periodMs);
    else if (begin <= this.#clock.elapsed()) nextPeriod = this.#clock.elapsed() + periodMs;
    schedule();
  }

  #decide(kind: ProbeKind, success: boolean, message: string): void {
    if (kind === "readiness") this.#listener.onReady(success);
    else if (!success) this.#listener.onUnhealthy(kind, message);
    else if (kind === "startup") this.#start();
  }

  #after(ms: number, callback: () => void): void {
    const cancel = this.#clock.after(Math.max(0, ms), () => {
      this.#ending.delete(cancel);
      if (!this.#stopped) callback();
    });
    this.#ending.add(cancel);
  }
}
