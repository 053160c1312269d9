/**
 * A platform for tests: a real API server in memory with this room's definitions and webhooks, and the room on it. The test
 * does by hand what the Deployment controller and the gateway would do.
 */
import { createApiServer } from "@spry/apiserver";
import {
  type Configuration,
  knative,
  knativeNames,
  type KService,
  type Revision,
  type Route,
} from "@spry/function";
import {
  type AdmissionResponse,
  type AdmissionReview,
  type Deployment,
  getCondition,
  KubeClient,
  type KubeObject,
  ManualClock,
  type Resource,
  resources,
  type Transport,
} from "@spry/kube";
import {
  createServingAdmission,
  servingDefaultingPath,
  type servingValidationPath,
} from "../admission/admission.ts";
import { type TryPod } from "../admission/dry-run.ts";
import { installServing } from "../definitions.ts";
import { type ServingOptions } from "../options.ts";
import { initialSettings, type Settings } from "../settings/settings.ts";
import { startServing } from "../start.ts";

export const namespace = "shop";
const deadlineMs = 15_000;
const stepMs = 5;
const image = `registry.example/hello@sha256:${"a".repeat(64)}`;

/** A Service of one container; `spec` is that of its template. */
export function kservice(name: string, spec: object = {}, more: object = {}): KService {
  return {
    metadata: { name, namespace },
    spec: { template: { spec: { containers: [{ image }], ...spec } }, ...more },
  } as unknown as KService;
}

export interface PlatformOptions extends Partial<ServingOptions> {
  through?: (transport: Transport) => Transport;
}

export class ServingPlatform implements AsyncDisposable {
  readonly client: KubeClient;
  readonly clock = new ManualClock(Date.now());
  readonly #transport: (user?: string) => KubeClient["transport"];
  readonly #through: (transport: Transport) => Transport;
  readonly #close: () => Promise<void>;
  readonly #options: Partial<ServingOptions>;
  #running: { stop: AbortController; ended: Promise<void> } | undefined;

  /** `through` is between the room and its API server. */
  static async start({
    through = (transport) => transport,
    ...options
  }: PlatformOptions = {}): Promise<ServingPlatform> {
    const api = await createApiServer({ dataDir: ":memory:" });
    const platform = new ServingPlatform(
      () => api.transport(),
      () => api.close(),
      options,
      through,
    );
    for (const name of [namespace, "knative-serving"])
      await platform.client.apply(resources.namespaces, { metadata: { name } });
    await platform.client.apply(resources.serviceAccounts, {
      metadata: { name: "default", namespace },
    });
    await installServing(platform.client);
    platform.startRoom();
    return platform;
  }

  private constructor(
    transport: () => KubeClient["transport"],
    close: () => Promise<void>,
    options: Partial<ServingOptions>,
    through: (transport: Transport) => Transport,
  ) {
    this.#through = through;
    this.#transport = transport;
    this.client = new KubeClient(transport(), { fieldManager: "test" });
    this.#close = close;
    this.#options = options;
  }

  startRoom(): void {
    const stop = new AbortController();
    const ended = startServing({
      client: new KubeClient(this.#through(this.#transport()), { fieldManager: "spry" }),
      gateways: () => [],
      domain: { name: "localhost", port: 8080 },
      clock: this.clock,
      ...this.#options,
      signal: stop.signal,
    });
    this.#running = { stop, ended };
  }

  async stopRoom(): Promise<void> {
    this.#running?.stop.abort();
    await this.#running?.ended;
    this.#running = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopRoom();
    await this.#close();
  }

  /** Asks again and again, with a little time passing in between, until there is an answer. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    const begin = performance.now();
    for (;;) {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      if (performance.now() - begin > deadlineMs)
        throw new Error(`waiting for ${what}: ${await this.#picture()}`);
      await new Promise((resolve) => setTimeout(resolve, 1));
      await this.clock.advance(stepMs);
    }
  }

  /** Lets the room do what it wants to do without anything new happening. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 40; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await this.clock.advance(stepMs);
    }
  }

  /** Lets time pass, with what happens meanwhile over connections. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      await this.clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  async #picture(): Promise<string> {
    const all = [knative.services, knative.configurations, knative.revisions, knative.routes];
    const lists = await Promise.all(
      all.map((resource) =>
        this.client.list(resource as Resource<KubeObject & { status?: object }>),
      ),
    );
    return JSON.stringify(
      lists.flatMap(({ items }) =>
        items.map(({ kind, metadata, status }) => [kind, metadata.name, status]),
      ),
    );
  }

  /** What the webhook makes of the object, as the API server would have it. */
  async defaulted<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const answer = await review(servingDefaultingPath, resource, object);
    const patch = JSON.parse(Buffer.from(answer.patch ?? "W10=", "base64").toString()) as {
      path: string;
      value: unknown;
    }[];
    const result = structuredClone(object) as T & { spec?: unknown };
    for (const { path, value } of patch) {
      if (path === "/spec") result.spec = value;
      else result.metadata.annotations = value as Record<string, string>;
    }
    return result;
  }

  async apply(object: KService): Promise<KService> {
    return this.client.apply(knative.services, await this.defaulted(knative.services, object));
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.client.get(resource, { namespace, name });
  }

  /** Waits for the condition to be as it says, `Ready=True` or `Ready=False RevisionFailed`. */
  condition<T extends KService | Configuration | Revision | Route>(
    resource: Resource<T>,
    name: string,
    wanted: string,
  ): Promise<T> {
    const [state = "", reason] = wanted.split(" ");
    const [type = "", status] = state.split("=");
    return this.until(`${resource.kind} ${name} ${wanted}`, async () => {
      const object = await this.get(resource, name).catch(() => undefined);
      const condition = getCondition(object?.status?.conditions, type);
      const isSo = condition?.status === status && (!reason || condition?.reason === reason);
      return isSo && object;
    });
  }

  deployment(revision: string): Promise<Deployment> {
    return this.until(`Deployment of ${revision}`, () =>
      this.get(resources.deployments, knativeNames.deployment(revision)).catch(() => undefined),
    );
  }

  /** What the Deployment controller says when as many Pods as desired, or so many, are ready. */
  async rollOut(revision: string, ready?: number): Promise<Deployment> {
    const deployment = await this.deployment(revision);
    const replicas = deployment.spec?.replicas ?? 1;
    const readyReplicas = ready ?? replicas;
    return this.deploymentStatus(deployment, {
      replicas,
      updatedReplicas: replicas,
      readyReplicas,
      availableReplicas: readyReplicas,
      conditions: [
        { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
        { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
      ],
    });
  }

  deploymentStatus(deployment: Deployment, status: object): Promise<Deployment> {
    const { name = "", generation } = deployment.metadata;
    const patch = { status: { observedGeneration: generation, ...status } };
    return this.client.patch(resources.deployments, { namespace, name }, patch, {
      subresource: "status",
    });
  }

  /** A Pod of the Revision with this state of its container. */
  async runPod(revision: string, containerStatus: object): Promise<void> {
    const { spec } = await this.deployment(revision);
    const pod = await this.client.create(resources.pods, {
      metadata: { ...spec?.template.metadata, name: `${revision}-pod`, namespace } as object,
      ...(spec?.template.spec ? { spec: spec.template.spec } : {}),
    });
    const status = {
      phase: "Running",
      containerStatuses: [
        {
          name: "user-container",
          image: spec?.template.spec?.containers[0]?.image ?? image,
          imageID: "",
          ready: false,
          restartCount: 0,
          ...containerStatus,
        },
      ],
    };
    const target = { namespace, name: pod.metadata.name ?? "" };
    await this.client.patch(resources.pods, target, { status }, { subresource: "status" });
  }

  /** From nothing to ready. */
  async running(object: KService, revision?: string): Promise<KService> {
    await this.apply(object);
    const { name = "" } = object.metadata;
    await this.rollOut(revision ?? `${name}-00001`);
    return this.condition(knative.services, name, "Ready=True");
  }

  async replicas(revision: string): Promise<number | undefined> {
    return (await this.deployment(revision)).spec?.replicas;
  }
}

/** Sends a review to the webhook, as an API server does. */
export async function review(
  path: typeof servingDefaultingPath | typeof servingValidationPath,
  { group, version, kind }: Resource,
  object: KubeObject,
  more: {
    oldObject?: KubeObject;
    username?: string;
    settings?: Partial<Settings>;
    tryPod?: TryPod;
  } = {},
): Promise<AdmissionResponse> {
  const { oldObject, username = "jane", settings, tryPod } = more;
  const admission = createServingAdmission(() => ({ ...initialSettings(), ...settings }), tryPod);
  const request = {
    uid: "1",
    operation: oldObject ? "UPDATE" : "CREATE",
    kind: { group, version, kind },
    userInfo: { username },
    object,
    ...(oldObject ? { oldObject } : {}),
  };
  const body: AdmissionReview = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: request as NonNullable<AdmissionReview["request"]>,
  };
  const answer = await admission.fetch(
    new Request(`https://webhook${path}`, { method: "POST", body: JSON.stringify(body) }),
  );
  return ((await answer.json()) as { response: AdmissionResponse }).response;
}
