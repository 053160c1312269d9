import { functions } from "@spry/function";
import { explain } from "@spry/gateway";
import {
  type Clock,
  type KubeClient,
  type KubeObject,
  messageOf,
  type ObjectKey,
  type Resource,
  resources,
  StatusError,
} from "@spry/kube";

/** Why something waits: for its owner, and for anyone, where a Function's condition says more than all may read. */
export interface Wait {
  /** UpperCamelCase. */
  reason: string;
  message: string;
  publicMessage?: string;
}

/** What the API server says about a Service that could not be reached. */
export interface Look {
  /** It has said that there is none; false also where it could not be asked. */
  isMissing: boolean;
  /** Where it knows more than who tried. */
  wait?: Wait;
}

const knownMs = 1_000;
const timeoutMs = 5_000;
const maxKnown = 10_000;

/** Looks at Functions and Services that could not be reached, each at most once a second. */
export class FunctionLooks {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #known = new Map<string, { at: number; look: Promise<Look> }>();

  constructor(client: KubeClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Never rejects. */
  look(key: ObjectKey): Promise<Look> {
    const now = this.#clock.elapsed();
    const known = this.#known.get(key);
    if (known && now - known.at < knownMs) return known.look;
    if (this.#known.size >= maxKnown) this.#known.clear();
    const look = this.#ask(key).catch((error: unknown) => ({
      isMissing: false,
      wait: { reason: "ApiServerUnreachable", message: apiProblem(error) },
    }));
    this.#known.set(key, { at: now, look });
    return look;
  }

  async #ask(key: ObjectKey): Promise<Look> {
    const fn = await this.#find(functions, key);
    if (!fn) return { isMissing: !(await this.#hasService(key)) };
    const { reason, message } = explain(key, fn, false);
    if (reason === "NoReadyEndpoint") return { isMissing: false };
    return {
      isMissing: false,
      wait: { reason, message, publicMessage: explain(key, fn, true).message },
    };
  }

  /** By a list: what delivers may list Services, and need not be allowed to get them. */
  async #hasService(key: ObjectKey): Promise<boolean> {
    const [namespace = "", name = ""] = key.split("/");
    const signal = AbortSignal.timeout(timeoutMs);
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await this.#client.list(resources.services, {
      namespace,
      fieldSelector,
      signal,
    });
    return items.length > 0;
  }

  /** Undefined: the API server says that there is no such object. */
  async #find<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T | undefined> {
    const [namespace = "", name = ""] = key.split("/");
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await this.#client.get(resource, { namespace, name, signal });
    } catch (error) {
      // Without a name it is the kind that the server does not know, at present perhaps.
      const isMissing =
        error instanceof StatusError &&
        error.reason === "NotFound" &&
        error.status.details?.name === name;
      if (isMissing) return undefined;
      throw error;
    }
  }
}

export const apiProblem = (error: unknown): string =>
  `the API server cannot be asked at present: ${messageOf(error)}`;
