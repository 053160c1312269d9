/**
 * A platform for tests: a real API server in memory and the Function Controller on it. The test
 * does by hand what Job controller, Deployment controller and kubelet would do.
 */
import { createApiServer } from "@spry/apiserver";
import {
  type ConditionType,
  type Function,
  type FunctionCondition,
  functionCrd,
  functions,
  type FunctionSpec,
  labels,
} from "@spry/function";
import {
  type ControllerMetrics,
  controllerRef,
  type Deployment,
  getCondition,
  type Job,
  KubeClient,
  type KubeObject,
  type Logger,
  ManualClock,
  type Pod,
  type PodTemplateSpec,
  type Resource,
  resources,
  silentLogger,
  type Transport,
} from "@spry/kube";
import { isFinished } from "../build/build-slots.ts";
import { type ControllerConfig } from "../config.ts";
import { type RegistryAccess } from "../registry/registry-secret.ts";
import { startFunctionController } from "../start.ts";
import { settings } from "./objects.ts";

export const namespace = "shop";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const deadlineMs = 15_000;
const stepMs = 5;
/** What passes at once while something is waited for; more only as it really does, for the sake of processes. */
const freeMs = 5_000;

export class TestPlatform implements AsyncDisposable {
  readonly client: KubeClient;
  readonly clock = new ManualClock(Date.now());
  /** What the controller wrote, as `PATCH /api/v1/…`, without Events. */
  readonly writes: string[] = [];
  /** Warnings and errors of the controller's log, as `message: error`. */
  readonly troubles: string[] = [];
  /** The platform's own, for the next start of the controller. */
  registry: RegistryAccess | undefined;
  /** Stands between controller and API server; `pass` sends a request on. */
  fault: ((request: Request, pass: Transport) => Promise<Response>) | undefined;
  readonly #config: Partial<ControllerConfig>;
  readonly #transport: Transport;
  readonly #close: () => Promise<void>;
  #running: { stop: AbortController; ended: Promise<void> } | undefined;

  readonly #metrics: ControllerMetrics | undefined;
  readonly #log: Logger = {
    ...silentLogger,
    warn: (fields, message) => this.#note(fields, message),
    error: (fields, message) => this.#note(fields, message),
    child: () => this.#log,
  };

  static async start(
    config: Partial<ControllerConfig> = {},
    metrics?: ControllerMetrics,
  ): Promise<TestPlatform> {
    const api = await createApiServer({ dataDir: ":memory:" });
    const platform = new TestPlatform(api.transport(), () => api.close(), config, metrics);
    await platform.#install();
    platform.startController();
    return platform;
  }

  private constructor(
    transport: Transport,
    close: () => Promise<void>,
    config: Partial<ControllerConfig>,
    metrics: ControllerMetrics | undefined,
  ) {
    this.#metrics = metrics;
    this.#transport = transport;
    this.client = new KubeClient(transport, { fieldManager: "test" });
    this.#close = close;
    this.#config = config;
  }

  #note(fields: object, message: string): void {
    const { error } = fields as { error?: unknown };
    this.troubles.push(`${message}: ${error instanceof Error ? error.message : String(error)}`);
  }

  async #install(): Promise<void> {
    await this.client.apply(resources.customResourceDefinitions, functionCrd());
    for (const name of ["kyma-system", namespace]) {
      await this.client.apply(resources.namespaces, { metadata: { name } });
    }
    await this.client.apply(resources.serviceAccounts, {
      metadata: { name: "serverless-function", namespace: "kyma-system" },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: "serverless-registry-config-default" }],
    });
    await this.installRegistry();
  }

  async installRegistry(pull = "pull.example"): Promise<void> {
    await this.client.apply(resources.secrets, {
      metadata: {
        name: "serverless-registry-config-default",
        namespace: "kyma-system",
        labels: { [labels.config]: "credentials" },
      },
      type: "kubernetes.io/dockerconfigjson",
      data: {
        ".dockerconfigjson": base64("{}"),
        pullRegAddr: base64(pull),
        pushRegAddr: base64("push.example:5000"),
      },
    });
  }

  startController(): void {
    const stop = new AbortController();
    const recording: Transport = (request) => {
      const { pathname } = new URL(request.url);
      if (request.method !== "GET" && !pathname.endsWith("/events")) {
        this.writes.push(`${request.method} ${pathname}`);
      }
      return this.fault ? this.fault(request, this.#transport) : this.#transport(request);
    };
    const ended = startFunctionController({
      client: new KubeClient(recording),
      config: { ...settings, ...this.#config },
      clock: this.clock,
      log: this.#log,
      ...(this.#metrics ? { metrics: this.#metrics } : {}),
      internalRegistry: this.registry,
      signal: stop.signal,
    });
    this.#running = { stop, ended };
  }

  async stopController(): Promise<void> {
    this.#running?.stop.abort();
    await this.#running?.ended;
    this.#running = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopController();
    await this.#close();
  }

  /** Asks again and again, with time passing in between, until there is an answer. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    const begin = performance.now();
    for (let passedMs = 0; ; passedMs += stepMs) {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      const realMs = performance.now() - begin;
      if (realMs > deadlineMs) throw new Error(`waiting for ${what}: ${await this.#picture()}`);
      if (passedMs > freeMs + realMs) await new Promise((resolve) => setTimeout(resolve, stepMs));
      await this.clock.advance(stepMs);
    }
  }

  /** Lets the controller do what it wants to do without anything new happening. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await this.clock.advance(stepMs);
  }

  async #picture(): Promise<string> {
    const list = await this.client.list(functions, { namespace });
    return JSON.stringify(list.items.map(({ metadata, status }) => [metadata.name, status]));
  }

  apply(name: string, spec: Partial<FunctionSpec> = {}, more: object = {}): Promise<Function> {
    return this.client.apply(functions, {
      metadata: { name, namespace, ...more },
      spec: { source: { inline: { source: `code of ${name}` } }, ...spec },
    });
  }

  get(name: string): Promise<Function> {
    return this.client.get(functions, { namespace, name });
  }

  /** Waits for a condition of this reason whose message has these words. */
  condition(
    name: string,
    type: ConditionType,
    reason: string,
    words = "",
  ): Promise<FunctionCondition> {
    return this.until(`${name} ${type} ${reason} ${words}`, async () => {
      const condition = getCondition((await this.get(name)).status?.conditions, type);
      return condition?.reason === reason && condition.message.includes(words) && condition;
    });
  }

  async children<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T[]> {
    const labelSelector = `${labels.functionName}=${name}`;
    return (await this.client.list(resource, { namespace, labelSelector })).items;
  }

  /** The Function's one unfinished build Job. */
  buildJob(name: string): Promise<Job> {
    return this.until(`build of ${name}`, async () => {
      const jobs = await this.children(resources.jobs, name);
      return jobs.find((job) => !isFinished(job));
    });
  }

  /** Ends the Function's build as its Pod would. */
  async endBuild(name: string, end: { exitCode: number; message: string }): Promise<Job> {
    const job = await this.buildJob(name);
    const container = {
      name: "executor",
      image: "builder",
      imageID: "",
      ready: false,
      restartCount: 0,
    };
    const podName = `${job.metadata.name}-${job.metadata.uid?.slice(0, 5)}`;
    await this.#createPod(resources.jobs, job, podName, job.spec?.template, {
      phase: end.exitCode === 0 ? "Succeeded" : "Failed",
      containerStatuses: [{ ...container, state: { terminated: { ...end, reason: "Error" } } }],
    });
    const startTime = new Date().toISOString();
    const well = end.exitCode === 0;
    const conditions = (
      well ? ["SuccessCriteriaMet", "Complete"] : ["FailureTarget", "Failed"]
    ).map((type) => ({ type, status: "True", reason: "Ended", lastTransitionTime: startTime }));
    const result = well ? { succeeded: 1, completionTime: startTime } : { failed: 1 };
    await this.#patchStatus(resources.jobs, job, { startTime, ...result, conditions });
    return job;
  }

  finishBuild(name: string, digit = "1"): Promise<Job> {
    const image = `push.example:5000/${namespace}-${name}@sha256:${digit.repeat(64)}`;
    return this.endBuild(name, { exitCode: 0, message: JSON.stringify({ image }) });
  }

  deployment(name: string): Promise<Deployment> {
    return this.until(
      `Deployment of ${name}`,
      async () => (await this.children(resources.deployments, name))[0],
    );
  }

  /** What the Deployment controller says when everything runs. */
  async rollOut(name: string): Promise<Deployment> {
    // Of what was last applied or built, not of what was before.
    await this.settle();
    const deployment = await this.deployment(name);
    const replicas = deployment.spec?.replicas ?? 1;
    return this.deploymentStatus(deployment, {
      replicas,
      updatedReplicas: replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
      conditions: [
        { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
        { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
      ],
    });
  }

  async deploymentStatus(deployment: Deployment, status: object): Promise<Deployment> {
    const observedGeneration = deployment.metadata.generation;
    return this.#patchStatus(resources.deployments, deployment, { observedGeneration, ...status });
  }

  /** A Pod of the Deployment, with this state of its container. */
  async runPod(deployment: Deployment, podName: string, containerStatus: object): Promise<void> {
    const status = {
      name: "function",
      image: "x",
      imageID: "",
      ready: false,
      restartCount: 0,
      ...containerStatus,
    };
    const template = deployment.spec?.template;
    await this.#createPod(resources.deployments, deployment, podName, template, {
      phase: "Running",
      containerStatuses: [status],
    });
  }

  /** From nothing to running. */
  async running(name: string, spec: Partial<FunctionSpec> = {}, digit = "1"): Promise<Function> {
    await this.apply(name, spec);
    await this.finishBuild(name, digit);
    await this.rollOut(name);
    await this.condition(name, "Running", "DeploymentReady");
    await this.settle();
    return this.get(name);
  }

  async #createPod(
    resource: Resource,
    owner: KubeObject,
    name: string,
    template: PodTemplateSpec | undefined,
    status: object,
  ): Promise<void> {
    const pod: Pod = await this.client.create(resources.pods, {
      metadata: {
        ...template?.metadata,
        name,
        namespace,
        ownerReferences: [controllerRef(resource, owner)],
      } as Pod["metadata"],
      ...(template?.spec ? { spec: template.spec } : {}),
    });
    await this.#patchStatus(resources.pods, pod, status);
  }

  #patchStatus<T extends KubeObject>(resource: Resource<T>, object: T, status: object): Promise<T> {
    const { name = "" } = object.metadata;
    const options = { subresource: "status" };
    return this.client.patch(resource, { namespace, name }, { status }, options);
  }
}
