import { createHash } from "node:crypto";
import { type Transport, transportOrigin } from "@spry/kube";
import { RequestError } from "./http.ts";

const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/** How long a token counts as known after a review. What it may do is decided with each request. */
const knownMs = 30_000;
const maxKnown = 1_000;
const maxQuestions = 16;
const timeoutMs = 10_000;

/**
 * Which tokens that this server has not issued the API server knows. Until it has confirmed a token, requests with it cost
 * nothing here: no body is read, and no tab is accepted.
 */
export class ForeignTokens {
  readonly #transport: Transport;
  readonly #now: () => number;
  /** Digests of tokens, each with the time until which it counts; the oldest first. */
  readonly #known = new Map<string, number>();
  readonly #asking = new Map<string, Promise<boolean>>();

  /** @param transport to the API server, as the user of a token */
  constructor(transport: Transport, now: () => number = Date.now) {
    this.#transport = transport;
    this.#now = now;
  }

  /** Throws a RequestError if the API server cannot be queried now. */
  async isKnown(token: string): Promise<boolean> {
    const digest = createHash("sha256").update(token).digest("base64");
    if ((this.#known.get(digest) ?? 0) > this.#now()) return true;
    const asking = this.#asking.get(digest);
    if (asking) return asking;
    if (this.#asking.size >= maxQuestions)
      throw new RequestError(503, "too many logins at once: try again in a moment");
    const question = this.#ask(token)
      .then((isKnown) => {
        if (isKnown) this.#remember(digest);
        return isKnown;
      })
      .finally(() => this.#asking.delete(digest));
    this.#asking.set(digest, question);
    return question;
  }

  async #ask(token: string): Promise<boolean> {
    const request = new Request(transportOrigin + path, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({
        apiVersion: "authentication.k8s.io/v1",
        kind: "SelfSubjectReview",
      }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer = await this.#transport(request).catch(() => undefined);
    await answer?.body?.cancel();
    if (!answer || answer.status >= 500)
      throw new RequestError(502, "the API server cannot be reached to check the token");
    // An older API server does not have the review (404); with a token that it does not know it responds with 401 to every path.
    return answer.status !== 401;
  }

  #remember(digest: string): void {
    this.#known.delete(digest);
    for (const [oldest] of this.#known) {
      if (this.#known.size < maxKnown) break;
      this.#known.delete(oldest);
    }
    this.#known.set(digest, this.#now() + knownMs);
  }
}
