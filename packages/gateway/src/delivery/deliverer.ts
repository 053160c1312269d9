import { withPorts } from "@spry/exposure";
import {
  type Clock,
  type EndpointSlice,
  Informer,
  type KubeClient,
  type Logger,
  plainAddress,
  resources,
  type Service,
  silentLogger,
  systemClock,
} from "@spry/kube";
import { Destination } from "../activation/destination.ts";
import { type Seeker } from "../activation/waiting-line.ts";
import { Backend } from "../attempt/backend.ts";
import { addressesOfService, addressesOfSlice } from "../exposure/key-reach.ts";
import { ServiceTargets } from "../exposure/service-targets.ts";
import { reasonHeader } from "../http/error-response.ts";
import { isGatewaySlice, serviceOfAnySlice, withoutRefused } from "../routing/endpoints.ts";
import { defaultSettings } from "../settings.ts";
import { attemptOnce, type Outcome } from "./attempt-once.ts";

/** What is to be sent to one port of a Service. */
export interface DeliveryRequest {
  namespace: string;
  name: string;
  port: number;
  method: string;
  /** Path and query. */
  path: string;
  /** Names and values by turns; `host` and `content-length` are added. */
  headers: readonly string[];
  body: Buffer;
  /** For everything: a place at a Pod, and the response. */
  timeoutMs: number;
  /** The rest of a response is cut off. */
  maxResponseBytes: number;
  signal?: AbortSignal | undefined;
  /** Called when the request is written to a Pod's connection; not where a gateway is between, which has yet to find one. */
  onSent?: () => void;
}

export interface DeliveryResponse {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** It was longer. */
  isCut: boolean;
}

/** No response; the message is a sentence for the owner of the Service. */
export interface DeliveryFailure {
  /** UpperCamelCase. */
  reason: string;
  message: string;
  /** The request was written to a connection: it may have been handled. */
  wasSent: boolean;
}

export type DeliveryResult = DeliveryResponse | DeliveryFailure;

/**
 * Whether a try counts: it has reached the receiver, or its request is one that can never be sent. All others say nothing about the
 * receiver, only that it could not be reached at that moment.
 */
export const hasReached = (result: DeliveryResult): boolean =>
  "status" in result || result.wasSent || neverSent.has(result.reason);

/** Faults of the request itself. */
const neverSent = new Set(["Unsendable", "AddressRefused"]);

export interface DelivererOptions {
  client: KubeClient;
  /** Indexed by `address`, and kept current by the caller, instead of by an informer of its own. */
  services?: Informer<Service>;
  clock?: Clock;
  log?: Logger;
  signal: AbortSignal;
}

/** Pods that refuse connections are tried this often, before that is the result. */
const maxTries = 5;

/**
 * Sends requests to Services, as a caller inside the cluster would: to a Pod, or to the gateway of what is served on demand,
 * which starts one. Names are looked up in EndpointSlices and nowhere else, and addresses of the machine's link (a
 * cloud's metadata) are never called, whatever a slice says.
 */
export class Deliverer {
  readonly ready: Promise<void>;
  readonly services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #targets: ServiceTargets;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  constructor({
    client,
    clock = systemClock,
    log = silentLogger,
    signal,
    services,
  }: DelivererOptions) {
    this.#clock = clock;
    this.#signal = signal;
    const watching = { clock, log, maxRetryMs: 1_000 };
    const own =
      services ??
      new Informer(client, resources.services, {
        ...watching,
        indexes: { address: addressesOfService },
        transform: withPorts,
      });
    this.services = own;
    const slices = new Informer(client, resources.endpointSlices, {
      ...watching,
      indexes: { service: serviceOfAnySlice, address: addressesOfSlice },
      transform: withoutRefused,
    });
    this.#slices = slices;
    if (!services) void own.run(signal);
    void slices.run(signal);
    this.#targets = new ServiceTargets(
      slices,
      {
        createDestination: (key, policy) => new Destination(key, policy, defaultSettings, clock),
      },
      serviceOfAnySlice,
    );
    this.#targets.use(own);
    this.ready = (async () => {
      await own.synced;
      await slices.synced;
    })();
    signal.addEventListener("abort", () => this.#targets.close(), { once: true });
  }

  /**
   * Why an address is not one outside the cluster, as the end of a sentence: it is a Service's or a Pod's. Not every cluster takes these from private
   * networks, and a name may resolve to any.
   */
  addressProblem(address: string): string | undefined {
    const plain = plainAddress(address);
    const isOwn = [this.services, this.#slices].some(
      (cache) => cache.byIndex("address", plain).length > 0,
    );
    return isOwn ? "is of a Service or a Pod of this cluster" : undefined;
  }

  async deliver(request: DeliveryRequest): Promise<DeliveryResult> {
    const { namespace, name, port, timeoutMs } = request;
    const destination = this.#targets.find({ namespace, name, port, exists: true })?.choose();
    if (!destination)
      return {
        reason: "ServiceNotFound",
        message: `Service ${namespace}/${name} does not exist, or has no port ${port}`,
        wasSent: false,
      };
    const seeker: Seeker = { arrivedAt: this.#clock.elapsed(), firstFailureAt: 0 };
    const until = seeker.arrivedAt + timeoutMs;
    for (let tries = 1; ; tries++) {
      // What closes waits for what is under way: nothing begins any more, and nothing waits for a Pod.
      if (this.#signal.aborted)
        return unsent({ reason: "Closing", message: "the process that delivers is being stopped" });
      const place = destination.take() ?? (await this.#waitFor(destination, seeker));
      if (!(place instanceof Backend)) return place;
      const leftMs = until - this.#clock.elapsed();
      if (leftMs <= 0 || request.signal?.aborted === true) {
        destination.release(place);
        return unsent({ reason: "Timeout", message: `no Pod within ${timeoutMs / 1000} s` });
      }
      const onSent = this.#isOfGateway(request) ? undefined : request.onSent;
      const outcome: Outcome = await attemptOnce(
        place,
        request,
        leftMs,
        this.#clock,
        onSent,
      ).finally(() => destination.release(place));
      if (!("mayRetry" in outcome)) return this.#unlessOfGateway(outcome, request);
      seeker.firstFailureAt ||= this.#clock.elapsed();
      place.suspect();
      if (!outcome.mayRetry || tries >= maxTries) return outcome;
    }
  }

  async #waitFor(destination: Destination, seeker: Seeker): Promise<Backend | DeliveryFailure> {
    const full = destination.enter(seeker, 0);
    if (full) return unsent(full);
    const place = await destination.wait(seeker);
    if (place instanceof Backend) return place;
    if (place && place !== "moved") return unsent(place);
    return unsent({ reason: "NoReadyEndpoint", message: `${destination.policy.name} has changed` });
  }

  #isOfGateway({ namespace, name }: DeliveryRequest): boolean {
    return this.#slices.byIndex("service", `${namespace}/${name}`).some(isGatewaySlice);
  }

  /** What is served on demand is reached by the gateway, which answers in its own name where no Pod has had the request. */
  #unlessOfGateway(response: DeliveryResponse, request: DeliveryRequest): DeliveryResult {
    const reason = response.headers[reasonHeader];
    if (reason === undefined || !isRefusal(response.status) || reachedReasons.has(reason))
      return response;
    // From a Pod, it would be the Function's own.
    if (!this.#isOfGateway(request)) return response;
    return unsent({ reason, message: messageIn(response) });
  }
}

/** It is asked for later again; other statuses of the gateway's own say no for good. */
const isRefusal = (status: number): boolean => status === 429 || status >= 500;
/** Of the gateway's responses, those to requests that a Pod has had. */
const reachedReasons = new Set(["UpstreamFailed", "UpstreamTimeout", "UpstreamHeadersTooLarge"]);

/** As text, or as JSON where the request's headers ask for that. */
function messageIn({ body, headers, status }: DeliveryResponse): string {
  const text = body.toString("utf8").trim();
  if (!(headers["content-type"] ?? "").includes("json")) return text || `HTTP ${status}`;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text;
  }
}

/** A status of the gateway's is for its clients: no Pod has sent it. */
const unsent = ({ reason, message }: { reason: string; message: string }): DeliveryFailure => ({
  reason,
  message,
  wasSent: false,
});
