import {
  type Clock,
  type KubeClient,
  type KubeObject,
  type Pod,
  type Resource,
  resources,
} from "@spry/kube";

/** `serviceAccountToken` of a projected volume. */
export interface TokenProjection {
  audience?: string;
  expirationSeconds?: number;
}

interface IssuedToken {
  token: string;
  /** When it is made anew: by the machine's clock, or by the time that has passed if that is earlier, for the clock may be set. */
  refreshAt: { now: number; elapsed: number };
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

interface TokenRequest extends KubeObject {
  spec: object;
  status?: { token: string; expirationTimestamp: string };
}

const defaultSeconds = 3600;
/** As the kubelet: a new one when four fifths of its time are over, or after a day. */
const refreshShare = 0.8;
const maxAgeMs = 24 * 3_600_000;
/** Pods that started together do not all ask at once. */
const jitterMs = 10_000;
/** If no new one can be had, the old one is used, and the next try comes after this time. */
const retryMs = 30_000;

/** The ServiceAccount tokens of one Pod: bound to it, and renewed before they expire. */
export class PodTokens {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #pod: Pod;
  readonly #issued = new Map<string, IssuedToken>();
  readonly #jitter = Math.random() * jitterMs;

  constructor(client: KubeClient, clock: Clock, pod: Pod) {
    this.#client = client;
    this.#clock = clock;
    this.#pod = pod;
  }

  /** Milliseconds until a token that was given out must be renewed; infinity when there is none. */
  get msUntilRefresh(): number {
    return Math.min(...[...this.#issued.values()].map((each) => this.#msLeft(each)));
  }

  /** A token that is valid for a while. Throws a `StatusError` when none can be had. */
  async token(projection: TokenProjection): Promise<string> {
    const { audience = "", expirationSeconds = defaultSeconds } = projection;
    const key = `${expirationSeconds} ${audience}`;
    const known = this.#issued.get(key);
    if (known && this.#msLeft(known) > 0) return known.token;
    try {
      const fresh = await this.#request(audience, expirationSeconds);
      this.#issued.set(key, fresh);
      return fresh.token;
    } catch (error) {
      if (!known || known.expiresAt <= this.#clock.now()) throw error;
      known.refreshAt = this.#in(retryMs);
      return known.token;
    }
  }

  async #request(audience: string, expirationSeconds: number): Promise<IssuedToken> {
    const { metadata, spec } = this.#pod;
    const { namespace = "", name = "", uid = "" } = metadata;
    const request: TokenRequest = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      metadata: { namespace, name: spec?.serviceAccountName ?? "default" },
      spec: {
        ...(audience && { audiences: [audience] }),
        expirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    };
    const accounts: Resource = resources.serviceAccounts;
    const answer = await this.#client.create(accounts, request, { subresource: "token" });
    const { status } = answer as TokenRequest;
    const { token = "", expirationTimestamp = "" } = status ?? {};
    const expiresAt = Date.parse(expirationTimestamp);
    const lifeMs = Math.min((expiresAt - this.#clock.now()) * refreshShare, maxAgeMs);
    return { token, expiresAt, refreshAt: this.#in(lifeMs - this.#jitter) };
  }

  #in(ms: number): IssuedToken["refreshAt"] {
    return { now: this.#clock.now() + ms, elapsed: this.#clock.elapsed() + ms };
  }

  #msLeft({ refreshAt }: IssuedToken): number {
    return Math.min(refreshAt.now - this.#clock.now(), refreshAt.elapsed - this.#clock.elapsed());
  }
}
