import { bearerToken, type Clock, isSameSecret, type Logger, messageOf, sleep } from "@spry/kube";

/** Where the token is kept; asked again when it may have changed. Undefined: there is none yet. */
export type TokenSource = () => string | undefined | Promise<string | undefined>;

/** Strangers with wrong tokens must not become requests to the API server. */
const readPauseMs = 1_000;
const readTimeoutMs = 5_000;

/** Admits clients that show the token (RFC 6750 section 2.1). Without a source, every client is refused. */
export class BearerAccess {
  readonly #source: TokenSource | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  #token: string | undefined;
  #reading: Promise<void> | undefined;
  #readAt = -Infinity;

  constructor(source: TokenSource | undefined, clock: Clock, log: Logger) {
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
  }

  /** `authorization` is the request's header. */
  async allows(authorization: string | undefined): Promise<boolean> {
    const given = bearerToken(authorization);
    if (given === undefined) return false;
    if (this.#isToken(given)) return true;
    await this.#refresh();
    return this.#isToken(given);
  }

  #isToken(given: string): boolean {
    return this.#token !== undefined && isSameSecret(given, this.#token);
  }

  #refresh(): Promise<void> | undefined {
    if (this.#reading || this.#clock.elapsed() - this.#readAt < readPauseMs) return this.#reading;
    this.#readAt = this.#clock.elapsed();
    return (this.#reading = this.#read().finally(() => (this.#reading = undefined)));
  }

  async #read(): Promise<void> {
    try {
      const token = await Promise.race([this.#source?.(), sleep(this.#clock, readTimeoutMs)]);
      // An empty token would admit everyone.
      if (token) this.#token = token;
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "reading the token of the administration failed");
    }
  }
}
