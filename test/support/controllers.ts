/** Controllers as processes, and what stands in for builds and nodes on a control plane without any. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { functionCrd, labels } from "@spry/function";
import {
  Controller,
  Informer,
  isConflict,
  isNotFound,
  type KubeClient,
  type Pod,
  resources,
  splitKey,
} from "@spry/kube";
import type { ControllerProcessOptions, Usage } from "./controller-process.ts";
import { root } from "./platform.ts";

const pullAddress = "pull.example";

export const controllerConfig = {
  runtimeImages: { nodejs24: `${pullAddress}/spry/nodejs24:1` },
  builderImage: `${pullAddress}/spry/builder:1`,
};

/** The image of this Function as builds here report it. */
export const imageOf = (namespace: string, name: string): string =>
  `${pullAddress}/${namespace}-${name}@sha256:${"1".repeat(64)}`;

/** The Function definition, and the base objects that Functions need. */
export async function installBase(client: KubeClient): Promise<void> {
  const base = "kyma-system";
  await client.apply(resources.customResourceDefinitions, functionCrd());
  await client.apply(resources.namespaces, { metadata: { name: base } });
  await client.apply(resources.serviceAccounts, {
    metadata: { name: "serverless-function", namespace: base },
  });
  const encode = (text: string) => Buffer.from(text).toString("base64");
  await client.apply(resources.secrets, {
    metadata: {
      name: "serverless-registry-config-default",
      namespace: base,
      labels: { [labels.config]: "credentials" },
    },
    type: "kubernetes.io/dockerconfigjson",
    data: {
      ".dockerconfigjson": encode('{"auths":{}}'),
      pullRegAddr: encode(pullAddress),
      pushRegAddr: encode(pullAddress),
    },
  });
}

export const controllerProgram = path.join(root, "test/support/controller-process.ts");

/** A Function Controller in a process of its own. */
export class ControllerProcess {
  readonly #child: ChildProcess;
  readonly #leading = Promise.withResolvers<void>();
  readonly #asked: ((usage: Usage) => void)[] = [];
  /** When all that it wrote has been read, too. */
  readonly exited: Promise<unknown>;
  #errors = "";

  constructor(
    kubeconfig: string,
    identity: string,
    options: ControllerProcessOptions,
    program = controllerProgram,
    nodeOptions = "",
  ) {
    const args = [program, kubeconfig, identity, JSON.stringify(options)];
    this.#child = spawn(process.execPath, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, NODE_OPTIONS: nodeOptions },
    });
    this.#child.stderr!.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      const said = JSON.parse(line) as { leads: true } | Usage;
      if ("leads" in said) this.#leading.resolve();
      else this.#asked.shift()?.(said);
    });
    this.exited = once(this.#child, "close");
  }

  /** Resolves when it leads, or has led. */
  async leads(): Promise<void> {
    await Promise.race([this.#leading.promise, this.whole()]);
  }

  async usage(): Promise<Usage> {
    const usage = new Promise<Usage>((resolve) => this.#asked.push(resolve));
    this.#child.stdin!.write("\n");
    return Promise.race([usage, this.whole()]);
  }

  /** Throws when it ends, with what it said. */
  async whole(): Promise<never> {
    await this.exited;
    throw new Error(`the controller ended:\n${this.#errors}`);
  }

  /** What it wrote to its standard error. */
  get errors(): string {
    return this.#errors;
  }

  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#child.kill(signal);
    await this.exited;
  }

  /** As a machine without processor time for it. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }
}

/**
 * Does what kubelets would: Pods of builds end well with an image, all others run and are ready. Pods stay
 * without a node. Works until the signal is aborted; with `namespace`, for that one alone.
 */
export async function standInForNodes(
  client: KubeClient,
  signal: AbortSignal,
  options: { namespace?: string } = {},
): Promise<void> {
  const labelSelector = labels.functionName;
  const pods = new Informer<Pod>(client, resources.pods, { ...options, labelSelector });
  const controller = new Controller({
    name: "nodes",
    workers: 8,
    async reconcile(key) {
      const pod = pods.get(key);
      if (!pod || pod.status?.phase !== "Pending" || pod.metadata.deletionTimestamp) return;
      const { namespace = "", name } = splitKey(key);
      const fn = pod.metadata.labels?.[labels.functionName] ?? "";
      const status = pod.spec?.restartPolicy === "Never" ? built(imageOf(namespace, fn)) : ready();
      await client
        .patch(resources.pods, { namespace, name }, { status }, { subresource: "status" })
        .catch((error: unknown) => {
          if (!isNotFound(error) && !isConflict(error)) throw error;
        });
    },
  });
  controller.watch(pods);
  await Promise.all([pods.run(signal), controller.run(signal)]);
}

function built(image: string): object {
  const terminated = { exitCode: 0, reason: "Completed", message: JSON.stringify({ image }) };
  return { phase: "Succeeded", containerStatuses: [containerStatus("executor", { terminated })] };
}

function ready(): object {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const conditions = ["Ready", "ContainersReady", "Initialized", "PodScheduled"].map((type) => ({
    type,
    status: "True",
    lastTransitionTime: now,
  }));
  const running = { running: { startedAt: now } };
  return {
    phase: "Running",
    conditions,
    containerStatuses: [containerStatus("function", running)],
  };
}

function containerStatus(name: string, state: object): object {
  return { name, image: "x", imageID: "x", restartCount: 0, ready: "running" in state, state };
}
