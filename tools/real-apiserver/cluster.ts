/** A cluster in a directory, a control plane with or without a node: up, down, status. What runs is on record before it is waited for. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  KubeClient,
  httpsTransport,
  isNotFound,
  loadKubeconfig,
  messageOf,
  resources,
} from "@spry/kube";
import { freePort } from "@spry/test-kit";
import {
  type BackgroundProcess,
  endProcess,
  identify,
  isRunning,
  lastLines,
  type ProcessIdentity,
  startInBackground,
} from "./background-process.ts";
import { binaryOf, cacheDir, missingPrograms, versions } from "./binaries.ts";
import { issueCertificates } from "./certificates.ts";
import {
  apiServer,
  auditPolicy,
  type Addresses,
  type ClusterUser,
  type Component,
  controllerManager,
  etcd,
  layout,
  scheduler,
} from "./components.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { startInNamespaces, startNamespaces } from "./node/namespaces.ts";
import { connect } from "./node/network.ts";
import { type NodeTraces, prepareNode, startNode, undoNode } from "./node/node.ts";
import { whyNoNode } from "./node/requirements.ts";
import { Problem } from "./problem.ts";
import { until } from "./until.ts";

export interface Cluster {
  /** The Kubernetes version, with its `v`. */
  version: string;
  server: string;
  /** An administrator's. */
  kubeconfig: string;
  /** `https://host:port`; its client certificate is `pki/etcd-client`. */
  etcd: string;
  processes: BackgroundProcess[];
  /** When it has a node: what that changed on the machine. */
  node?: NodeTraces;
  /** While it is being started: the process that does it. */
  starter?: ProcessIdentity;
}

export interface ClusterOptions {
  node?: boolean;
  /** Of the API server, besides those that are on by default. */
  admissionPlugins?: readonly string[];
  /** Further arguments of the API server. */
  apiServerArgs?: readonly string[];
}

/** One of each program; a node adds containerd, kubelet and kube-proxy, and the first process of its namespaces. */
const size = { withoutNode: 4, withNode: 8 };
const startTimeoutMs = 120_000;
const endGraceMs = 15_000;

export const defaultDir = (node = false): string =>
  path.join(cacheDir(), node ? "cluster-with-node" : "cluster");

/**
 * Starts a control plane from the cached programs, with a node if that is asked for, or finds the one that runs in
 * the directory. When that fails, or the signal is aborted, nothing of it is left.
 */
export async function up(
  dir: string,
  signal: AbortSignal,
  options: ClusterOptions = {},
): Promise<Cluster> {
  const found = read(dir);
  if (found?.starter && isRunning(found.starter)) {
    throw new Problem(
      `starting a control plane in ${dir}: process ${found.starter.pid} is at it already`,
      "wait until it is done, or name another directory with --dir",
    );
  }
  if (found && isWhole(found)) return found;
  if (found) await down(dir);
  const missing = missingPrograms();
  if (missing.length > 0) throw new Error(`starting a control plane: ${missing.join()} not built`);
  const reason = options.node ? whyNoNode() : undefined;
  if (reason) throw new Problem("starting a node", reason);
  const ports = await freePorts();
  create(dir);
  try {
    return await start(dir, ports, signal, options);
  } catch (error) {
    await down(dir);
    throw error;
  }
}

export function isWhole({ starter, processes, node }: Cluster): boolean {
  const expected = node ? size.withNode : size.withoutNode;
  return !starter && processes.length === expected && processes.every(isRunning);
}

/** Ends exactly the processes on record, puts back what a node changed, and removes the directory. Says whether there was any. */
export async function down(dir: string): Promise<boolean> {
  const cluster = read(dir);
  if (!cluster) return false;
  // With a node all is in its namespaces, and those end with their first process.
  const order = cluster.node ? cluster.processes : cluster.processes.toReversed();
  for (const one of order) await endProcess(one, endGraceMs);
  if (cluster.node) await undoNode(cluster.node);
  rmSync(dir, { recursive: true, force: true });
  return true;
}

export function read(dir: string): Cluster | undefined {
  const { record } = layout(dir);
  if (!existsSync(record)) return undefined;
  return JSON.parse(readFileSync(record, "utf8")) as Cluster;
}

/** The directory is the lock: of two that start at once, one creates it. */
function create(dir: string): void {
  mkdirSync(path.dirname(dir), { recursive: true });
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new Problem(
      `starting a control plane in ${dir}: the directory exists and holds none`,
      "name another with --dir, or remove it",
      { cause },
    );
  }
}

async function start(
  dir: string,
  ports: Ports,
  signal: AbortSignal,
  { node: withNode = false, admissionPlugins, apiServerArgs }: ClusterOptions,
): Promise<Cluster> {
  const files = layout(dir);
  const cluster: Cluster = {
    version: versions().kubernetes,
    server: "",
    kubeconfig: files.kubeconfig,
    etcd: "",
    processes: [],
    starter: identify(process.pid),
  };
  const record = (one: BackgroundProcess) => {
    cluster.processes.push(one);
    write(dir, cluster);
    return one;
  };
  write(dir, cluster);
  let host = "127.0.0.1";
  let first: BackgroundProcess | undefined;
  if (withNode) {
    first = record(await startNamespaces(dir, signal));
    const network = await connect(first);
    host = network.address;
    cluster.node = prepareNode(network);
  }
  const at: Addresses = { host, ...ports };
  cluster.server = `https://${host}:${ports.apiServer}`;
  cluster.etcd = `https://${host}:${ports.etcd}`;
  write(dir, cluster);
  issueCertificates(files.pki, host);
  writeFileSync(files.auditPolicy, auditPolicy);
  writeKubeconfig(files.kubeconfig, dir, cluster.server, "admin");
  for (const user of withNode ? [...controlPlaneUsers, ...nodeUsers] : controlPlaneUsers) {
    writeKubeconfig(files.kubeconfigOf(user), dir, cluster.server, user);
  }
  const startAndWait = async (component: Component) => {
    const { program, args } = component;
    const options = { cwd: dir, log: files.log(program) };
    const binary = binaryOf(program);
    const one = first
      ? await startInNamespaces(first, program, binary, args, { ...options, signal })
      : startInBackground(program, binary, args, options);
    await untilReady(dir, component, record(one), signal);
  };
  await startAndWait(etcd(dir, at));
  await startAndWait(apiServer(dir, at, admissionPlugins, apiServerArgs));
  await Promise.all([startAndWait(controllerManager(dir, at)), startAndWait(scheduler(dir, at))]);
  await untilControllersWork(files.kubeconfig, signal);
  if (first && cluster.node) {
    await startNode(dir, first, cluster.node, { signal, onStart: record });
  }
  delete cluster.starter;
  write(dir, cluster);
  return cluster;
}

const controlPlaneUsers: ClusterUser[] = ["controller-manager", "scheduler"];
const nodeUsers: ClusterUser[] = ["kubelet", "kube-proxy"];

export function write(dir: string, cluster: Cluster): void {
  const { record } = layout(dir);
  writeFileSync(`${record}.new`, `${JSON.stringify(cluster, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${record}.new`, record);
}

async function untilReady(
  dir: string,
  { program, ready }: Component,
  one: BackgroundProcess,
  signal: AbortSignal,
): Promise<void> {
  const { certificate, key } = layout(dir);
  const pem = (file: string) => readFileSync(file, "utf8");
  const transport = httpsTransport({
    server: new URL(ready.url).origin,
    namespace: "default",
    certificateAuthority: pem(certificate(ready.authority)),
    clientCertificate: pem(certificate(ready.client)),
    clientKey: pem(key(ready.client)),
  });
  try {
    await until(`${program} is ready`, { signal, timeoutMs: startTimeoutMs }, async () => {
      if (!isRunning(one)) throw new Error("it ended at its start");
      const answer = await transport(new Request(ready.url)).catch(() => undefined);
      await answer?.body?.cancel();
      return answer?.status === 200;
    });
  } catch (cause) {
    // The log goes with the directory, so its end is reported here.
    const log = signal.aborted ? "" : `; its log ends with\n${lastLines(one)}`;
    throw new Error(`starting ${program}: ${messageOf(cause)}${log}`, { cause });
  } finally {
    transport.close();
  }
}

/** Until there is a default ServiceAccount no Pod can be created, and it takes a controller to make it. */
async function untilControllersWork(kubeconfig: string, signal: AbortSignal): Promise<void> {
  const transport = httpsTransport(loadKubeconfig(kubeconfig));
  const client = new KubeClient(transport);
  try {
    await until("the controllers work", { signal, timeoutMs: startTimeoutMs }, async () => {
      try {
        await client.get(resources.serviceAccounts, { namespace: "default", name: "default" });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    });
  } finally {
    transport.close();
  }
}

type Ports = Omit<Addresses, "host">;

async function freePorts(): Promise<Ports> {
  return {
    etcd: await freePort(),
    etcdPeer: await freePort(),
    apiServer: await freePort(),
    controllerManager: await freePort(),
    scheduler: await freePort(),
  };
}
