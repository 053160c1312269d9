import { STATUS_CODES } from "node:http";
import { type ObjectKey } from "@spry/kube";
import { Histogram } from "./histogram.ts";

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Beyond so many rows of a Function and a status, requests are counted under no Function's name. */
const maxRows = 10_000;

/** What still exists; both are asked with `namespace/name`. */
export interface Existing {
  hasRoute: (key: ObjectKey) => boolean;
  hasRevision: (key: ObjectKey) => boolean;
}

/** The gateway's counters, in the Prometheus text format. */
export class GatewayMetrics {
  readonly #requests = new Histogram(
    "spry_gateway_request_duration_seconds",
    "Time from a request's head to the end of its response.",
    seconds,
    maxRows,
  );
  readonly #coldStarts = new Histogram(
    "spry_gateway_cold_start_seconds",
    "Time that requests waited because no Pod was ready.",
    seconds,
    maxRows,
  );
  /** The labels of a Function's requests with a status, so that they are written once. */
  readonly #labels = new Map<ObjectKey, Map<number, string>>();
  /** Requests in progress, tunnels included. */
  active = 0;
  /** Requests that wait for a place at a Pod. */
  waiting = 0;
  /** Requests sent again, to another Pod or over a new connection. */
  retried = 0;

  /** Counts a request that has ended; `key` only for hosts that have a route. */
  observe(key: ObjectKey | undefined, status: number, duration: number): void {
    this.#requests.observe(
      key,
      this.#labelsOf(key ?? "/", status),
      duration,
      this.#labelsOf("/", status),
    );
  }

  /** A request waited for a first Pod; `revision` is `namespace/name`. */
  coldStarted(key: ObjectKey, revision: ObjectKey | undefined, duration: number): void {
    const name = revision?.slice(revision.indexOf("/") + 1) ?? "";
    const labels = (of: ObjectKey, at: string) => `${namesOf(of)},revision="${at}"`;
    this.#coldStarts.observe(revision ?? key, labels(key, name), duration, labels("/", ""));
  }

  /** Rows of what has been deleted are written no more: they would stay until the gateway ends. */
  render({ hasRoute, hasRevision }: Existing): string {
    this.#requests.retain(hasRoute);
    this.#coldStarts.retain((owner) => hasRevision(owner) || hasRoute(owner));
    for (const key of this.#labels.keys())
      if (key !== "/" && !hasRoute(key)) this.#labels.delete(key);
    const retried = "spry_gateway_repeated_requests_total";
    const lines = [
      ...gauge("spry_gateway_active_requests", "Requests in progress.", this.active),
      ...gauge("spry_gateway_waiting_requests", "Requests waiting for a Pod.", this.waiting),
      `# HELP ${retried} Requests sent again, to another Pod or over a new connection.`,
      `# TYPE ${retried} counter`,
      `${retried} ${this.retried}`,
      ...this.#requests.render(),
      ...this.#coldStarts.render(),
    ];
    return `${lines.join("\n")}\n`;
  }

  #labelsOf(key: ObjectKey, status: number): string {
    let ofKey = this.#labels.get(key);
    if (!ofKey) {
      if (this.#labels.size >= maxRows) return labelsOf(key, status);
      this.#labels.set(key, (ofKey = new Map()));
    }
    let labels = ofKey.get(status);
    if (labels === undefined) ofKey.set(status, (labels = labelsOf(key, status)));
    return labels;
  }
}

function namesOf(key: ObjectKey): string {
  const [namespace, name] = key.split("/");
  return `namespace="${namespace}",function="${name}"`;
}

function labelsOf(key: ObjectKey, status: number): string {
  // A Pod may answer with any number: those without a name in HTTP are counted by their class.
  const code = STATUS_CODES[status] ? status : `${Math.floor(status / 100)}xx`;
  return `${namesOf(key)},code="${code}"`;
}

function gauge(name: string, help: string, value: number): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name} ${value}`];
}
