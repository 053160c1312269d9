import { type CountsLine, countsPath } from "@spry/function";
import { type Clock, type Logger, messageOf, sleep } from "@spry/kube";
import { LineSplitter, parseCountsLine } from "./counts-line.ts";

export interface CountsClientOptions {
  gateways: () => readonly string[] | Promise<readonly string[]>;
  /** See `ServingOptions.countsToken`. */
  token?: (() => string | Promise<string>) | undefined;
  /** `source` is the connection: it names a gateway from when it is there until it is gone. */
  onLine: (source: string, line: CountsLine) => void;
  onGone: (source: string) => void;
  clock: Clock;
  log: Logger;
}

const lookEveryMs = 1_000;
/** A gateway writes at least an empty line every second. */
const silenceMs = 5_000;
const firstRetryMs = 50;
const maxRetryMs = 2_000;
/** So long nothing may be heard of a gateway without what happened meanwhile counting as unknown. */
const shortGapMs = 2_000;
const maxGateways = 100;

/** Keeps a connection to each gateway and hands on what they say (`CountsLine`). */
export class CountsClient {
  readonly #options: CountsClientOptions;
  readonly #running = new Map<string, AbortController>();
  /** Since when each gateway is heard, or is not. */
  readonly #heard = new Map<string, { isHeard: boolean; since: number }>();
  #knownSince: number | undefined;

  constructor(options: CountsClientOptions) {
    this.#options = options;
  }

  /** Since when every gateway has been heard, but for short gaps; undefined while one is not. */
  get knownSince(): number | undefined {
    const all = [...this.#heard.values()];
    return all.length > 0 && all.every(({ isHeard }) => isHeard) ? this.#knownSince : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, gateways } = this.#options;
    while (!signal.aborted) {
      try {
        this.#follow([...new Set(await gateways())].slice(0, maxGateways), signal);
      } catch (error) {
        log.warn({ error: messageOf(error) }, "listing the gateways failed, trying again");
      }
      await sleep(clock, lookEveryMs, signal);
    }
    for (const stop of this.#running.values()) stop.abort();
  }

  #follow(urls: readonly string[], signal: AbortSignal): void {
    for (const [url, stop] of this.#running) {
      if (urls.includes(url)) continue;
      stop.abort();
      this.#running.delete(url);
      this.#heard.delete(url);
    }
    for (const url of urls) {
      if (this.#running.has(url)) continue;
      const stop = new AbortController();
      this.#running.set(url, stop);
      this.#heard.set(url, { isHeard: false, since: this.#options.clock.elapsed() });
      void this.#keep(url, AbortSignal.any([signal, stop.signal]));
    }
  }

  async #keep(url: string, signal: AbortSignal): Promise<void> {
    const { clock, log, onGone } = this.#options;
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      try {
        await this.#listen(url, signal, () => (retryMs = firstRetryMs));
      } catch (error) {
        if (!signal.aborted)
          log.debug({ gateway: url, error: messageOf(error) }, "a gateway's counts ended");
      }
      this.#hear(url, false);
      onGone(url);
      await sleep(clock, retryMs * (0.5 + Math.random() / 2), signal);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  async #listen(url: string, signal: AbortSignal, onData: () => void): Promise<void> {
    const { clock, onLine, token } = this.#options;
    const silent = new AbortController();
    const fail = () => silent.abort(new Error(`nothing was heard for ${silenceMs} ms`));
    let cancel = clock.after(silenceMs, fail);
    try {
      const response = await fetch(new URL(countsPath, url), {
        headers: token ? { authorization: `Bearer ${await token()}` } : {},
        // It would go along to wherever a stranger's answer leads.
        redirect: "error",
        signal: AbortSignal.any([signal, silent.signal]),
      });
      if (!response.ok || !response.body) {
        await response.body?.cancel();
        throw new Error(`${countsPath} was answered with ${response.status}`);
      }
      const splitter = new LineSplitter();
      for await (const chunk of response.body) {
        onData();
        this.#hear(url, true);
        for (const text of splitter.push(chunk)) {
          const line = parseCountsLine(text);
          if (line) onLine(url, line);
        }
        cancel();
        cancel = clock.after(silenceMs, fail);
      }
    } finally {
      cancel();
    }
  }

  #hear(url: string, isHeard: boolean): void {
    const state = this.#heard.get(url);
    if (!state || state.isHeard === isHeard) return;
    const now = this.#options.clock.elapsed();
    const gapMs = now - state.since;
    this.#heard.set(url, { isHeard, since: now });
    if (isHeard && (this.#knownSince === undefined || gapMs > shortGapMs)) this.#knownSince = now;
  }
}
