/** Spry's own Pods are replaced, as an upgrade or a node's end does, while callers and writers go on. */
import { type Function, functions } from "@spry/function";
import { resources } from "@spry/kube";
import { controllerName } from "../../packages/cli/src/install/controller.ts";
import { gatewayName } from "../../packages/cli/src/install/gateway.ts";
import { type PodsCluster, inClient } from "./client-pod.ts";
import { pause } from "./platform.ts";

interface Replacement {
  /** Where Spry is, and where the client's Pod is. */
  system: string;
  namespace: string;
  /** Of this namespace; it is called through the gateway. */
  called: string;
  /** It is asked for, and not made. */
  written: Function;
}

interface Outcome {
  written: number;
  refusals: string[];
  ok: number;
  bad: string[];
}

/** In the client's Pod: a request to it ends the calls. */
const endingPort = 9191;
const timeoutMs = 120_000;

/** Resolves when none of the Pods that there were is left. */
export async function replaceOwnPods(
  cluster: PodsCluster,
  { system, namespace, called, written }: Replacement,
): Promise<Outcome> {
  const before = await ownPods(cluster, system);
  const calling = inClient(cluster, namespace, caller(system, `${called}.${namespace}`));
  const refusals: string[] = [];
  let count = 0;
  const write = () =>
    cluster.client.create(functions, structuredClone(written), { dryRun: true }).then(
      () => void count++,
      (error: unknown) => void refusals.push(String(error)),
    );
  for (const name of [controllerName, gatewayName])
    await cluster.client.patch(resources.deployments, { namespace: system, name }, restarted());
  const end = Date.now() + timeoutMs;
  for (let left = before; left.length > 0;) {
    if (Date.now() > end) throw new Error(`replacing Pods: ${left.join(", ")} are still there`);
    await write();
    await pause(50);
    const present = await ownPods(cluster, system);
    left = left.filter((each) => present.includes(each));
  }
  await inClient(cluster, namespace, `fetch("http://127.0.0.1:${endingPort}/")`);
  const { ok, bad } = JSON.parse(await calling) as Pick<Outcome, "ok" | "bad">;
  return { written: count, refusals, ok, bad };
}

async function ownPods({ client }: PodsCluster, system: string): Promise<string[]> {
  const { items } = await client.list(resources.pods, { namespace: system });
  return items
    .map(({ metadata }) => metadata.name ?? "")
    .filter((name) => [controllerName, gatewayName].some((own) => name.startsWith(`${own}-`)));
}

/** As `kubectl rollout restart` does it. */
function restarted() {
  const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
  return { spec: { template: { metadata: { annotations } } } };
}

/** Over connections that are kept, until the caller has enough. */
function caller(system: string, host: string): string {
  return `const http = require("node:http");
    const agent = new http.Agent({ keepAlive: true });
    const options = { agent, headers: { host: "${host}.localhost" } };
    const url = "http://${gatewayName}.${system}.svc.cluster.local/";
    const ask = () => new Promise((resolve, reject) => {
      http.get(url, options, (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode)).on("error", reject);
      }).on("error", reject);
    });
    let ok = 0, bad = [], hasEnough = false;
    const ending = http.createServer((_, response) => {
      hasEnough = true;
      response.end();
      ending.close();
    }).listen(${endingPort}, "127.0.0.1");
    (async () => {
      while (!hasEnough) {
        await ask().then(
          (status) => (status === 200 ? ok++ : bad.push(String(status))),
          (error) => bad.push(String(error)),
        );
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      agent.destroy();
      console.log(JSON.stringify({ ok, bad }));
    })();`;
}
