import { type DeliveryResult, hasReached, postOutside } from "@spry/gateway";
import { type Delivery } from "@spry/queue";
import { Reach } from "../reach.ts";
import { apiProblem, type FunctionLooks } from "./function-looks.ts";
import { serviceOf } from "./read-request.ts";
import { type RunnerDeps } from "./runner.ts";

const retryMs = 1_000;
const maxBackoffMs = 60_000;
/** Of those that have reached the receiver. */
const maxAttempts = 8;
const timeoutMs = 30_000;
/** After that, a result that has not reached its receiver is given up. */
const neverReachedMs = 86_400_000;
const maxKnown = 1_000;
/** While a receiver is away: for a minute, then less often. */
const awayMs = { first: 3_000, tries: 20, later: 20_000, most: 60_000, manyTries: 100 };

/** Sends the results of calls to the URLs that their clients have named. */
export class CallbackSender {
  readonly #deps: RunnerDeps;
  readonly #looks: FunctionLooks;
  /** Receivers that could not be reached: one result at a time finds out whether they can. */
  readonly #away = new Map<string, { reach: Reach; isTrying: boolean }>();

  constructor(deps: RunnerDeps, looks: FunctionLooks) {
    this.#deps = deps;
    this.#looks = looks;
  }

  async send(delivery: Delivery): Promise<void> {
    const { clock, log, claims, queue } = this.#deps;
    const { attributes, at } = delivery.message;
    const { url = "", namespace = "", headers = "{}", uid } = attributes;
    const target = new URL(url);
    const receiver = `${namespace} ${target.origin}`;
    const bury = (reason: string, message: string, counts: boolean) => {
      const call = (JSON.parse(headers) as Record<string, string>)["x-call-id"];
      log.warn({ call, why: message }, "a call's result could not be sent");
      delivery.bury({ reason, message }, { counts });
    };
    const missed = (why: string): void => {
      if (clock.now() - at >= neverReachedMs)
        return bury("NeverReached", `not sent within ${neverReachedMs / 1_000} s: ${why}`, false);
      delivery.retry(this.#pauseAfter(delivery.attempt), { counts: false });
    };
    const known = this.#away.get(receiver);
    if (known && (known.isTrying || known.reach.pauseMs > 0))
      return missed("its receiver cannot be reached");
    if (uid !== undefined) {
      try {
        // The result is not for another namespace of this name.
        if (uid !== (await claims.uidOf(queue, namespace))) return delivery.ack();
      } catch (error) {
        return missed(apiProblem(error));
      }
    }
    if (known) known.isTrying = true;
    const result = await this.#deliver(delivery, target).finally(() => {
      if (known) known.isTrying = false;
    });
    if (!hasReached(result) && !("status" in result)) {
      const service = serviceOf(target);
      const isMissing =
        service && (await this.#looks.look(`${namespace}/${service.name}`)).isMissing;
      if (isMissing) return bury("CallbackFailed", `Service ${service.name} does not exist`, false);
      this.#miss(receiver);
      return missed(`${result.reason}: ${result.message}`);
    }
    this.#away.delete(receiver);
    if ("status" in result && result.status < 300) return delivery.ack();
    const why =
      "status" in result ? `HTTP ${result.status}` : `${result.reason}: ${result.message}`;
    const attempts = delivery.failures + 1;
    if (attempts >= maxAttempts) return bury("CallbackFailed", why, true);
    return delivery.retry(Math.min(retryMs * 2 ** attempts, maxBackoffMs));
  }

  async #deliver({ message }: Delivery, target: URL): Promise<DeliveryResult> {
    const { attributes } = message;
    const { url = "", namespace = "" } = attributes;
    const headers = JSON.parse(attributes["headers"] ?? "{}") as Record<string, string>;
    const body = Buffer.from(message.body);
    const name = serviceOf(target)?.name;
    if (name === undefined)
      return postOutside({
        url,
        headers,
        body,
        timeoutMs,
        allowPrivate: this.#deps.allowPrivate && attributes["ofmachine"] === "true",
        addressProblem: this.#deps.addressProblem,
      });
    return this.#deps.deliver({
      namespace,
      name,
      port: target.port === "" ? 80 : Number(target.port),
      method: "POST",
      path: `${target.pathname}${target.search}`,
      headers: Object.entries(headers).flat(),
      body,
      timeoutMs,
      maxResponseBytes: 1_024,
    });
  }

  #miss(receiver: string): void {
    let known = this.#away.get(receiver);
    if (!known) {
      for (const first of this.#away.keys()) {
        if (this.#away.size < maxKnown) break;
        this.#away.delete(first);
      }
      known = { reach: new Reach(this.#deps.clock), isTrying: false };
      this.#away.set(receiver, known);
    }
    known.reach.missed();
  }

  #pauseAfter(tries: number): number {
    const { first, later, most } = awayMs;
    const ms = tries <= awayMs.tries ? first : tries <= awayMs.manyTries ? later : most;
    return Math.round(Math.min(retryMs * 2 ** Math.min(tries - 1, 10), ms));
  }
}
