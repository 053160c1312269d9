/**
 * Program, for tests and benchmarks: a Function Controller of its own that leads or waits to.
 * Arguments: kubeconfig, identity, JSON of `{ config, lease }`. Answers each line on its standard input with one
 * line of JSON, its `Usage`; says `{"leads":true}` when it begins to lead.
 */
import { createInterface } from "node:readline";
import { type ControllerConfig, startFunctionController } from "@spry/controller";
import {
  httpsTransport,
  KubeClient,
  type LeaderElectionOptions,
  loadKubeconfig,
  prometheusMetrics,
  runAsLeader,
  type Transport,
} from "@spry/kube";

export interface ControllerProcessOptions {
  config: ControllerConfig;
  /** Times of the Lease, in milliseconds. */
  lease?: Partial<LeaderElectionOptions>;
}

export interface Usage {
  /** Requests that write, without the Lease's and Events. */
  writes: number;
  leaseWrites: number;
  events: number;
  /** Requests that read: lists, watches, single objects. */
  reads: number;
  /** Processor time so far, in milliseconds. */
  cpuMs: number;
  /** Resident memory in bytes: now, and at its peak. */
  rss: number;
  peakRss: number;
}

const [kubeconfig, identity = "", text = "{}"] = process.argv.slice(2);
const options = JSON.parse(text) as ControllerProcessOptions;
const counts = { writes: 0, leaseWrites: 0, events: 0, reads: 0 };

const real = httpsTransport(loadKubeconfig(kubeconfig));
const counting: Transport = (request) => {
  const { pathname } = new URL(request.url);
  if (request.method === "GET") counts.reads++;
  else {
    if (pathname.includes("/leases")) counts.leaseWrites++;
    else if (/\/events(\/|$)/.test(pathname)) counts.events++;
    else counts.writes++;
  }
  return real(request);
};
const client = new KubeClient(counting, { fieldManager: "spry" });

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
createInterface({ input: process.stdin }).on("line", () => {
  const { user, system } = process.cpuUsage();
  const usage: Usage = {
    ...counts,
    cpuMs: (user + system) / 1000,
    rss: process.memoryUsage.rss(),
    peakRss: process.resourceUsage().maxRSS * 1024,
  };
  console.log(JSON.stringify(usage));
});

const done = runAsLeader(
  { client, namespace: "kyma-system", name: "controller", identity, ...options.lease },
  (signal, fenced) => {
    console.log(JSON.stringify({ leads: true }));
    const { config } = options;
    return startFunctionController({
      client: fenced,
      config,
      metrics: prometheusMetrics(),
      signal,
    });
  },
  stop.signal,
);
done.then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
