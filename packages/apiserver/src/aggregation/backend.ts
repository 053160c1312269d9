import { type ClientRequest, type OutgoingHttpHeaders } from "node:http";
import { Agent, type AgentOptions, request } from "node:https";
import { StatusError } from "@spry/kube";
import { serviceAddresses } from "../admission/webhooks/service-address.ts";
import { WebhookAgent } from "../admission/webhooks/webhook-agent.ts";
import { type ApiServiceSpec, defaultServicePort } from "../kinds/api-service/api-service.ts";
import { type Store } from "../store/store.ts";
import { type FrontProxy } from "./front-proxy.ts";

/** Watches included: one server's clients must not take the connections of all others. */
const maxRequests = 500;
const maxIdleConnections = 8;
const idleMs = 30_000;
const connectTimeoutMs = 10_000;

export interface Outgoing {
  method: string;
  /** With its query. */
  path: string;
  headers: OutgoingHttpHeaders;
  signal: AbortSignal;
  /** Whether the request has no body, and may use a connection that the server is about to close. */
  isRepeatable?: boolean;
}

/** HTTPS to the Service of one APIService. */
export class Backend {
  /** The APIService's. */
  readonly name: string;
  readonly #spec: ApiServiceSpec;
  readonly #store: Store;
  readonly #kept: Agent;
  readonly #fresh: Agent;
  #requests = 0;

  constructor(
    name: string,
    spec: ApiServiceSpec,
    { store, frontProxy }: { store: Store; frontProxy: FrontProxy | undefined },
  ) {
    this.name = name;
    this.#spec = spec;
    this.#store = store;
    const { service, caBundle, insecureSkipTLSVerify } = spec;
    const options: AgentOptions = {
      servername: `${service?.name}.${service?.namespace}.svc`,
      ...(frontProxy && { cert: frontProxy.cert, key: frontProxy.key }),
      ...(insecureSkipTLSVerify && { rejectUnauthorized: false }),
      // As in Go, each certificate of the bundle is an anchor.
      ...(caBundle && { allowPartialTrustChain: true }),
    };
    const agent = (more: AgentOptions) =>
      caBundle
        ? new WebhookAgent(
            { ...options, ...more },
            Buffer.from(caBundle, "base64").toString("latin1"),
          )
        : new Agent({ ...options, ...more });
    this.#kept = agent({ keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: idleMs });
    this.#fresh = agent({ keepAlive: false });
  }

  /** A request to one of the Service's ready endpoints; the caller ends it. Throws a `StatusError`. */
  request({ method, path, headers, signal, isRepeatable = false }: Outgoing): ClientRequest {
    const { service: { namespace = "", name = "", port = defaultServicePort } = {} } = this.#spec;
    if (this.#requests >= maxRequests) {
      const message = `${this.name} has ${maxRequests} requests already: try again later`;
      throw new StatusError({ code: 429, message, details: { retryAfterSeconds: 1 } });
    }
    let addresses: { host: string; port: number }[];
    try {
      addresses = serviceAddresses(this.#store, { namespace, name, port });
    } catch (cause) {
      throw unavailable(this.name, (cause as Error).message, { cause });
    }
    const address = addresses[Math.floor(Math.random() * addresses.length)];
    const sent = request({
      ...address,
      method,
      path,
      headers: { ...headers, host: `${name}.${namespace}.svc:${port}` },
      agent: isRepeatable ? this.#kept : this.#fresh,
      signal,
    });
    this.#requests++;
    sent.once("close", () => this.#requests--);
    this.#limitConnecting(sent);
    return sent;
  }

  close(): void {
    this.#kept.destroy();
    this.#fresh.destroy();
  }

  #limitConnecting(sent: ClientRequest): void {
    const timer = setTimeout(() => {
      sent.destroy(new Error(`no connection within ${connectTimeoutMs / 1000} s`));
    }, connectTimeoutMs);
    // The agents hand over sockets that are connected.
    for (const event of ["socket", "close"]) sent.once(event, () => clearTimeout(timer));
  }
}

/** What kubectl shows as `Error from server (ServiceUnavailable)`. */
export function unavailable(name: string, why: string, options?: ErrorOptions): StatusError {
  const message = `the server is currently unable to handle the request: APIService ${name}: ${why}`;
  return new StatusError({ code: 503, reason: "ServiceUnavailable", message }, options);
}
