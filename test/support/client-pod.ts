/** Callers of Functions within a cluster: Pods that fit the level "restricted", from an image that has Node.js. */
import { type KubeClient, type Pod, resources } from "@spry/kube";
import { pause, run } from "./platform.ts";

export interface PodsCluster {
  client: KubeClient;
  kubeconfig: string;
  images: Record<string, string>;
}

const clientName = "client";
const loadPort = 9090;

const securityContext = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
};

/** A Pod that runs this script; resolves when it runs. */
async function startPod(
  { client, images }: PodsCluster,
  target: { namespace: string; name: string },
  script: string,
  options: { serviceAccountName?: string } = {},
): Promise<Pod> {
  const image = images["nodejs24"] ?? "";
  const main = { name: "main", image, command: ["node", "-e", script], securityContext };
  await client.create<Pod>(resources.pods, {
    metadata: target,
    spec: { terminationGracePeriodSeconds: 0, ...options, containers: [main] },
  });
  for (;;) {
    const pod = await client.get(resources.pods, target);
    if (pod.status?.phase === "Running") return pod;
    await pause(100);
  }
}

export async function startClient(
  cluster: PodsCluster,
  namespace: string,
  options: { serviceAccountName?: string } = {},
): Promise<void> {
  const target = { namespace, name: clientName };
  await startPod(cluster, target, "setInterval(() => {}, 1000)", options);
}

/** What a script prints in the client's Pod. */
export async function inClient(
  { kubeconfig }: PodsCluster,
  namespace: string,
  script: string,
): Promise<string> {
  const args = ["--kubeconfig", kubeconfig, "-n", namespace, "exec", clientName, "--"];
  const { code, stdout, stderr } = await run("kubectl", [...args, "node", "-e", script]);
  if (code !== 0) throw new Error(`in the client's Pod: ${stderr}${stdout}`);
  return stdout.trim();
}

export const serviceUrl = (namespace: string, name: string): string =>
  `http://${name}.${namespace}.svc.cluster.local/`;

/**
 * A Function's answer through its Service, from the client's Pod. A Service refuses connections until kube-proxy has heard
 * of its first Pod, which is up to a second after that Pod is ready, and its name is unknown until CoreDNS has heard of it;
 * longer on a busy node: so long a caller waits.
 */
export function answerOf(cluster: PodsCluster, namespace: string, name: string): Promise<string> {
  const script = `const end = Date.now() + 15_000;
    const attempt = async () => {
      try {
        console.log(await (await fetch(${JSON.stringify(serviceUrl(namespace, name))})).text());
      } catch (error) {
        const isEarly = ["ECONNREFUSED", "ENOTFOUND"].includes(error.cause?.code);
        if (!isEarly || Date.now() > end) throw error;
        setTimeout(attempt, 100);
      }
    };
    void attempt();`;
  return inClient(cluster, namespace, script);
}

/** Two callers in the client's Pod, one request after the other each, until one gets this answer. */
export async function callUntil(
  cluster: PodsCluster,
  namespace: string,
  url: string,
  text: string,
): Promise<{ ok: number; bad: string[] }> {
  const script = `let ok = 0, bad = [], last;
    const one = async () => {
      while (last !== ${JSON.stringify(text)}) {
        try {
          const answer = await fetch(${JSON.stringify(url)});
          last = await answer.text();
          if (answer.status === 200) ok++; else bad.push(answer.status + " " + last);
        } catch (error) { bad.push(String(error.cause ?? error)); }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    Promise.all([one(), one()]).then(() => console.log(JSON.stringify({ ok, bad })));`;
  return JSON.parse(await inClient(cluster, namespace, script)) as { ok: number; bad: string[] };
}

/** What comes of a connection to each address (`host:port`) from the client's Pod: `open`, an error's code, `silence`. */
export async function connections(
  cluster: PodsCluster,
  namespace: string,
  addresses: readonly string[],
): Promise<Record<string, string>> {
  const script = `const { connect } = require("node:net");
    const attempt = (address) => new Promise((resolve) => {
      const socket = connect(Number(address.split(":")[1]), address.split(":")[0]);
      const end = (word) => { socket.destroy(); resolve([address, word]); };
      // What has come meanwhile counts, however late this process is to look.
      socket.setTimeout(3000, () => setImmediate(end, "silence")).on("connect", () => end("open")).on("error", ({ code }) => end(code));
    });
    Promise.all(${JSON.stringify(addresses)}.map(attempt)).then((all) => console.log(JSON.stringify(Object.fromEntries(all))));`;
  return JSON.parse(await inClient(cluster, namespace, script)) as Record<string, string>;
}

/** What callers have seen so far. */
export interface LoadReport {
  ok: number;
  /** What was no 200, with what it was instead; the first hundred. */
  bad: string[];
  /** The different answers, in the order in which each was first seen. */
  answers: string[];
  /** Answers that came after a newer one had been seen by the same caller, and what was seen between. */
  backwards: string[];
}

/**
 * Callers in a Pod of their own, one request after the other each, for as long as they are not stopped: they go on
 * while the node's kubelet is away, which an `exec` does not. Answers end with a number, the version.
 */
export class Load {
  readonly #cluster: PodsCluster;
  readonly #namespace: string;
  readonly #pod: Pod;

  private constructor(cluster: PodsCluster, namespace: string, pod: Pod) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#pod = pod;
  }

  /** Needs the client's Pod in the same namespace, which is asked for reports. */
  static async start(cluster: PodsCluster, namespace: string, name: string): Promise<Load> {
    const target = { namespace, name: `load-${name}` };
    const script = loadScript(serviceUrl(namespace, name));
    return new Load(cluster, namespace, await startPod(cluster, target, script));
  }

  async report(): Promise<LoadReport> {
    const url = `http://${this.#pod.status?.podIP}:${loadPort}/`;
    const script = `fetch("${url}").then((r) => r.text()).then((t) => console.log(t))`;
    return JSON.parse(await inClient(this.#cluster, this.#namespace, script)) as LoadReport;
  }

  async stop(): Promise<LoadReport> {
    const report = await this.report();
    const { namespace = "", name = "" } = this.#pod.metadata;
    await this.#cluster.client.delete(resources.pods, { namespace, name });
    return report;
  }
}

/** A version may come back while two Pods answer, but none from before those two. */
function loadScript(url: string): string {
  return `const seen = { ok: 0, bad: [], answers: [], backwards: [] };
    const version = (text) => Number(/\\d+$/.exec(text)?.[0] ?? 0);
    const one = async () => {
      for (let newest = 0; ; ) {
        try {
          const answer = await fetch(${JSON.stringify(url)});
          const text = await answer.text();
          if (answer.status !== 200) throw answer.status + " " + text;
          seen.ok++;
          if (!seen.answers.includes(text)) seen.answers.push(text);
          if (version(text) < newest - 1) seen.backwards.push(newest + " then " + text);
          newest = Math.max(newest, version(text));
        } catch (error) {
          if (seen.bad.length < 100) seen.bad.push(new Date().toISOString() + " " + (error.cause ?? error));
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    one(); one();
    require("node:http").createServer((_, response) => response.end(JSON.stringify(seen))).listen(${loadPort});`;
}
