import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { type Clock, StatusError, type Transport } from "@spry/kube";
import { type Sandbox } from "../sandbox/sandbox.ts";
import { logFileOf } from "./run-files.ts";
import { LogFile } from "./log-file.ts";
import { parseLogOptions, readLog } from "./log-reader.ts";
import { attachToPod, execInPod, forwardPort } from "./pod-streams.ts";
import { type PodWorker } from "./pod-worker.ts";
import { type ContainerStats, UsageMeter } from "./stats.ts";

export interface KubeletOptions {
  sandbox: Sandbox;
  clock: Clock;
  nodeName: string;
  pods: () => Iterable<PodWorker>;
}

/** The part of the kubelet's HTTP API that the API server and the autoscaler use. */
export function createKubelet(options: KubeletOptions): Transport {
  const meter = new UsageMeter(options.sandbox, options.clock);
  return async (request) => {
    try {
      const url = new URL(request.url);
      const stream = /^\/(exec|attach|portForward)\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(
        url.pathname,
      );
      if (stream && request.method === "POST") return await podStream(options, stream, request);
      if (request.method !== "GET")
        throw new StatusError({
          code: 405,
          message: `${request.method} is not supported by this node`,
        });
      if (url.pathname === "/healthz") return new Response("ok");
      if (url.pathname === "/stats/summary") return Response.json(await summary(options, meter));
      const logs = /^\/containerLogs\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(url.pathname);
      if (logs) {
        const [namespace = "", pod = "", container = ""] = logs.slice(1).map(decodeURIComponent);
        return containerLogs(
          options,
          { namespace, pod, container },
          url.searchParams,
          request.signal,
        );
      }
      throw new StatusError({ code: 404, message: `the node has no ${url.pathname}` });
    } catch (error) {
      const status =
        error instanceof StatusError
          ? error.status
          : new StatusError({ code: 500, message: (error as Error).message }).status;
      return Response.json(status, { status: status.code });
    }
  };
}

async function podStream(
  options: KubeletOptions,
  path: RegExpExecArray,
  request: Request,
): Promise<Response> {
  const [kind, namespace = "", pod = "", container = ""] = path
    .slice(1)
    .map((part: string | undefined) => decodeURIComponent(part ?? ""));
  const worker = workerOf(options, namespace, pod);
  if (kind === "exec") return execInPod(worker, container, request);
  if (kind === "attach") return attachToPod(worker, container, request, options.clock);
  return forwardPort(worker, request);
}

function workerOf({ pods }: KubeletOptions, namespace: string, pod: string): PodWorker {
  const worker = [...pods()].find(
    ({ pod: { metadata } }) => metadata.name === pod && metadata.namespace === namespace,
  );
  if (!worker) throw new StatusError({ code: 404, message: `pod "${pod}" not found on this node` });
  return worker;
}

function containerLogs(
  kubelet: KubeletOptions,
  target: { namespace: string; pod: string; container: string },
  query: URLSearchParams,
  signal: AbortSignal,
): Response {
  const { clock } = kubelet;
  const options = parseLogOptions(query);
  const worker = workerOf(kubelet, target.namespace, target.pod);
  const container = worker.container(target.container);
  if (!container)
    throw new StatusError({
      code: 400,
      message: `container ${target.container} is not valid for pod ${target.pod}`,
    });
  const place = worker.sandbox;
  const { state, lastState } = container.status();
  const waiting = state?.waiting?.reason;
  const hasEnded = state?.terminated ?? lastState?.terminated;
  const noPrevious = () =>
    new StatusError({
      code: 400,
      message: `previous terminated container "${target.container}" in pod "${target.pod}" not found`,
    });
  if (options.previous && container.run === 0 && !(waiting && hasEnded)) throw noPrevious();
  if (!place || (waiting && !hasEnded))
    throw new StatusError({
      code: 400,
      message: `container "${target.container}" in pod "${target.pod}" is waiting to start: ${waiting ?? "ContainerCreating"}`,
    });
  // While it waits to be restarted, the last run is both the present and the previous one.
  const last = options.previous && !waiting ? container.run - 1 : container.run;
  const earlier = options.previous ? (options.earlier ?? 0) : 0;
  const run = last - earlier;
  const file = logFileOf(place.dir, target.container, run);
  if (earlier > 0 && !existsSync(file)) throw noPrevious();
  const log = container.log?.file === file ? container.log : new LogFile(file, clock);
  const isRunning = () => !options.previous && container.isRunning && container.run === run;
  const body = readLog(log, options, isRunning, clock, signal);
  return new Response(
    Readable.toWeb(Readable.from(body, { objectMode: false })) as ReadableStream,
    { headers: { "content-type": "text/plain" } },
  );
}

async function summary({ pods, nodeName, clock }: KubeletOptions, meter: UsageMeter) {
  const time = new Date(clock.now()).toISOString();
  const byPod = Map.groupBy(await meter.read(), ({ podUid }) => podUid);
  const figures = (all: readonly ContainerStats[]) => ({
    cpu: {
      time,
      usageNanoCores: total(all, ({ cpuNanoCores }) => cpuNanoCores),
      usageCoreNanoSeconds: total(all, ({ cpuNanoseconds }) => cpuNanoseconds),
    },
    memory: { time, workingSetBytes: total(all, ({ memoryBytes }) => memoryBytes) },
  });
  return {
    node: { nodeName, ...figures([...byPod.values()].flat()) },
    pods: [...pods()].map(({ pod: { metadata, status } }) => {
      const containers = byPod.get(metadata.uid ?? "") ?? [];
      return {
        podRef: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
        startTime: status?.startTime,
        ...(containers.length > 0 ? figures(containers) : {}),
        containers: containers.map((each) => ({
          name: each.container,
          startTime: new Date(each.startedAt).toISOString(),
          ...figures([each]),
        })),
      };
    }),
  };
}

function total(all: readonly ContainerStats[], of: (stats: ContainerStats) => number): number {
  return all.reduce((sum, stats) => sum + of(stats), 0);
}
