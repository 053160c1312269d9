import { randomBytes } from "node:crypto";
import { type Function, isServedOnDemand, labels, type Runtime, runtimeOf } from "@spry/function";
import {
  type ClusterConfig,
  type EnvVar,
  isNotFound,
  type KubeClient,
  type Pod,
  resources,
  type Target,
} from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { closeToPods, copyLabel, ownPolicy, removePolicy } from "../debug/closed-to-pods.ts";
import { relayDebugpy } from "../debug/debugpy-relay.ts";
import { directoryInPod, functionDirectory } from "../debug/directory-in-pod.ts";
import { relayInspector } from "../debug/inspector-relay.ts";
import { type Relay } from "../debug/relay.ts";
import { findFunction } from "../find-function.ts";
import { exitCodeOf, untilInterrupted } from "../interruption.ts";
import { failureIn } from "../load-failure.ts";
import { forwardPort } from "../port-forward.ts";
import { Ticker } from "../ticker.ts";
import { UserError } from "../user-error.ts";
import { untilTrue } from "../until-true.ts";

const inspectPorts = { nodejs: 9229, python: 5678 };
const servingPort = 8080;
const startMs = 60_000;
/** Time limit of the copy, in case this command is killed. */
const maxSeconds = 4 * 3600;

/**
 * Starts a Pod like the Function's own, with the debugger's port open on its loopback, and brings that port and the Function's here.
 * The Function itself keeps serving: the copy gets only requests that are sent to it here. Runs until Ctrl-C.
 */
export async function debug(
  name: string,
  options: GlobalOptions & { port?: number },
): Promise<void> {
  const { client, cluster, namespace, gateway } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const { language } = runtimeOf(fn);
  const inspectPort = inspectPorts[language];
  const interrupted = untilInterrupted();
  const copy = await copyOf(client, fn, inspectVariables(inspectPort, gateway !== undefined));
  const podName = copy.metadata.name ?? "";
  const target = { namespace, name: podName };
  const report = (line: string) => console.error(line);
  const ticker = new Ticker();
  try {
    await closeToPods(client, target, report);
    await ownPolicy(client, await client.create(resources.pods, copy));
    ticker.wait(`starting a copy of ${name}`);
    const ended = await Promise.race([untilReady(client, target), interrupted]);
    ticker.stop();
    if (ended === undefined) {
      const way = { namespace, pod: podName, report };
      const localPort = options.port ?? inspectPort;
      const place = { way, remotePort: inspectPort, localPort };
      const inspector = await debuggerPort(cluster, language, place, gateway !== undefined);
      const calls = await forwardPort(cluster, { ...way, remotePort: servingPort, localPort: 0 });
      console.log(`debugger: 127.0.0.1:${inspector.port} (${attachWith[language]})`);
      console.log(`calls of the copy: http://localhost:${calls.port}/`);
      console.log("Ctrl-C ends it");
      await interrupted;
      inspector.close();
      calls.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new UserError(
      `port ${options.port ?? inspectPort} is in use by another program`,
      "choose another one with --port",
    );
  } finally {
    ticker.stop();
    await Promise.all([removePolicy(client, target), removeCopy(client, target)]);
  }
  process.exit(exitCodeOf(await interrupted));
}

async function removeCopy(client: KubeClient, target: Target): Promise<void> {
  try {
    await client.delete(resources.pods, target, { gracePeriodSeconds: 0 });
  } catch (error) {
    // It could not be created.
    if (!isNotFound(error)) throw error;
  }
}

interface DebuggerPlace {
  way: { namespace: string; pod: string; report: (line: string) => void };
  remotePort: number;
  localPort: number;
}

/** The debugger's port here. A debugger finds the Function's files where `.vscode/launch.json` says, in whichever sandbox it runs. */
async function debuggerPort(
  cluster: ClusterConfig,
  language: Runtime["language"],
  { way, remotePort, localPort }: DebuggerPlace,
  isOneMachine: boolean,
): Promise<Relay> {
  const directory = isOneMachine ? await directoryInPod(cluster, way) : functionDirectory;
  if (directory === functionDirectory)
    return forwardPort(cluster, { ...way, remotePort, localPort });
  const forwarding = await forwardPort(cluster, { ...way, remotePort, localPort: 0 });
  try {
    const relay =
      language === "nodejs"
        ? await relayInspector(localPort, { inspectorPort: forwarding.port, directory })
        : await relayDebugpy(localPort, { debugpyPort: forwarding.port, directory });
    return {
      port: relay.port,
      close() {
        relay.close();
        forwarding.close();
      },
    };
  } catch (error) {
    forwarding.close();
    throw error;
  }
}

const attachWith = {
  nodejs: "chrome://inspect, or VS Code: attach to Node.js",
  python: "VS Code: attach with debugpy, which must be among the packages",
};

/**
 * On a cluster a Pod's loopback is its own, and forwarded ports lead there. On one machine Pods can share the machine's, where each
 * has an address of its own that only this machine reaches.
 */
function inspectVariables(port: number, isOneMachine: boolean): EnvVar[] {
  if (!isOneMachine) return [{ name: "FUNC_INSPECT", value: `127.0.0.1:${port}` }];
  const address = { fieldRef: { fieldPath: "status.podIP" } };
  return [
    { name: "SPRY_POD_ADDRESS", valueFrom: address },
    { name: "FUNC_INSPECT", value: `$(SPRY_POD_ADDRESS):${port}` },
  ];
}

async function copyOf(client: KubeClient, fn: Function, inspect: readonly EnvVar[]): Promise<Pod> {
  const { namespace = "", name = "" } = fn.metadata;
  if (isServedOnDemand(fn.spec))
    throw new UserError(
      `Function ${name} is served on demand, and cannot be copied`,
      "run its directory with `spry dev --inspect`",
    );
  const labelSelector = `${labels.functionName}=${name}`;
  const { items } = await client.list(resources.deployments, { namespace, labelSelector });
  const template = items[0]?.spec?.template;
  if (!template?.spec)
    throw new UserError(
      `Function ${name} has no Deployment yet`,
      `spry describe ${name} shows why`,
    );
  const [container, ...others] = template.spec.containers;
  const env = (container?.env ?? []).filter((each) => each.name !== "FUNC_INSPECT");
  const {
    livenessProbe: _liveness,
    startupProbe: _startup,
    ...own
  } = container ?? { name: "function" };
  const copyName = `${name.slice(0, 40)}-debug-${randomBytes(3).toString("hex")}`;
  return {
    metadata: {
      name: copyName,
      namespace,
      // Without the labels by which a Service or a ReplicaSet would select it as one of the Function's Pods.
      labels: {
        "app.kubernetes.io/component": "debug",
        "app.kubernetes.io/part-of": name,
        [copyLabel]: copyName,
      },
    },
    spec: {
      ...template.spec,
      restartPolicy: "Never",
      activeDeadlineSeconds: maxSeconds,
      containers: [{ ...own, env: [...env, ...inspect] }, ...others],
    },
  };
}

async function untilReady(
  client: KubeClient,
  target: { namespace: string; name: string },
): Promise<void> {
  await untilTrue("the copy is ready", startMs, async () => {
    const { status } = await client.get(resources.pods, target);
    const [container] = status?.containerStatuses ?? [];
    const end = container?.state?.terminated;
    if (end) throw new UserError(`the copy failed: ${failureIn(end.message ?? "").summary}`);
    return container?.ready === true || (container?.state?.waiting?.reason ?? false);
  });
}
