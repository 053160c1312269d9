import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Clock, type Logger, messageOf, sleep } from "@spry/kube";
import { listNames } from "../records.ts";
import { Demand } from "./demand.ts";
import { copyRuntime, type IsShipped, type RuntimeCopy } from "./runtime-copy.ts";
import { type ContainerUser } from "../oci/container-user.ts";
import { type ExitStatus, type Isolation, type LocalImage, type WarmFigures } from "../sandbox.ts";
import { warmDir } from "./warm-process.ts";

/** After a start, before the next process is made ready: who waits for that start has an answer by then. */
const pauseMs = 300;
/** How often it is looked at whether fewer are needed. */
const lookMs = 30_000;
/** A runtime that does not say within this time that it waits cannot wait. */
const startMs = 20_000;
/** How long a kind of start is not tried again then. */
const giveUpMs = 10 * 60_000;
const leastFreeMemory = 0.1;
/** Different ones that are copied, while a platform runs; there are six. */
const maxRuntimes = 12;
/** Whose runtimes are remembered. */
const maxImages = 1000;

/** What has to be equal for a process to become a container. */
export interface StartOptions {
  runtime: RuntimeCopy;
  /** As `startVariables` returns them. */
  variables: Readonly<Record<string, string>>;
  /** Limits and identity, where a process has those that it was started with. */
  confined?: { isolation: Isolation | undefined; user: ContainerUser } | undefined;
}

/** What waits for a Pod. */
export interface Waiting {
  /** What has to be equal in the start of its Pod. */
  readonly key: string;
  readonly isOver: boolean;
  readonly exited: Promise<ExitStatus>;
  /** Resolves when it has nothing left to prepare; never, if its runtime does not say so. */
  readonly waiting: Promise<void>;
  /** Kills it, with nothing left of it. */
  end(): Promise<void>;
}

export interface WarmPoolOptions<W extends Waiting> {
  dataDir: string;
  /** How many may wait, all together. */
  max: number;
  isShipped: IsShipped;
  start: (id: string, key: string, options: StartOptions) => Promise<W>;
  /** A process that had no Pod is gone, and its address is free. */
  release: (process: W) => void;
  freeMemory?: () => number;
  clock: Clock;
  log: Logger;
}

/** The processes that wait for Pods (docs/adr/0028-warm-processes.md). */
export class WarmPool<W extends Waiting> {
  readonly #options: WarmPoolOptions<W>;
  readonly #demand: Demand;
  /** Those that are not wanted any more, until they are gone. */
  readonly #ending = new Set<Promise<void>>();
  readonly #waiting = new Set<W>();
  readonly #kinds = new Map<string, StartOptions>();
  /** Digest of an image → its runtime, once it is known; null for one that has none. */
  readonly #runtimes = new Map<string, RuntimeCopy | null>();
  /** Digest of an image → the key of its last start. */
  readonly #keys = new Map<string, string>();
  /** Key → until when it is not tried. */
  readonly #givenUp = new Map<string, number>();
  readonly #figures = { used: 0, missed: 0 };
  readonly #runtimesDir: string;
  #cancel = () => {};
  /** The next look is for a start that has been counted. */
  #isDue = false;
  /** Another start has been counted since the last look. */
  #isChanged = false;
  #working: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions<W>) {
    this.#options = options;
    this.#demand = new Demand(options.max);
    this.#runtimesDir = path.join(warmDir(options.dataDir), "runtimes");
    mkdirSync(this.#runtimesDir, { recursive: true, mode: 0o755 });
  }

  /** Removes what an earlier platform has left, but not the runtimes that containers still have. */
  clean(runtimesInUse: ReadonlySet<string>): void {
    const dir = warmDir(this.#options.dataDir);
    for (const name of listNames(dir))
      if (name.endsWith(".log")) rmSync(path.join(dir, name), { force: true });
    for (const name of listNames(this.#runtimesDir))
      if (!runtimesInUse.has(name))
        rmSync(path.join(this.#runtimesDir, name), { recursive: true, force: true });
  }

  get figures(): WarmFigures {
    const { max } = this.#options;
    return { max, waiting: this.#waiting.size, ...this.#figures };
  }

  /**
   * A process for a Pod with this image, if one waits that is likely to fit: as the image's last start, or with its runtime and with
   * these limits. It is the caller's from now on.
   */
  reserve(image: LocalImage, isolation?: Isolation): W | undefined {
    const key = this.#keys.get(image.digest);
    const waiting = [...this.#waiting].filter(({ isOver }) => !isOver);
    const found =
      key === undefined
        ? waiting.find((each) => this.#mayFit(each, image, isolation))
        : waiting.find((each) => each.key === key);
    if (found) this.#waiting.delete(found);
    return found;
  }

  #mayFit({ key }: W, image: LocalImage, isolation: Isolation | undefined): boolean {
    const kind = this.#kinds.get(key);
    if (!kind || kind.runtime.digest !== this.runtimeOf(image)?.digest) return false;
    return !kind.confined || isDeepStrictEqual(kind.confined.isolation, isolation);
  }

  /** Looks for the runtime of an image that has not been started yet, while something waits that could be for it. */
  async learn(image: LocalImage): Promise<void> {
    if (this.#waiting.size > 0) await this.#learn(image);
  }

  /** The runtime of an image, if that is known already. */
  runtimeOf(image: LocalImage): RuntimeCopy | undefined {
    return this.#runtimes.get(image.digest) ?? undefined;
  }

  keyOf({ runtime, variables, confined }: StartOptions): string {
    const sorted = Object.entries(variables).sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([runtime.digest, sorted, confined]);
  }

  /** A container of this kind has been started: more of them are expected. */
  started(image: LocalImage, options: Omit<StartOptions, "runtime">, isWarm: boolean): void {
    this.#figures[isWarm ? "used" : "missed"]++;
    void this.#expect(image, options, this.#options.clock.elapsed());
  }

  /** One of this kind could not become a container: none of them is started for a while. */
  giveUp(key: string): void {
    this.#givenUp.set(key, this.#options.clock.elapsed() + giveUpMs);
  }

  async #expect(
    image: LocalImage,
    options: Omit<StartOptions, "runtime">,
    startedAt: number,
  ): Promise<void> {
    const runtime = await this.#learn(image);
    if (!runtime || this.#closing.signal.aborted) return;
    const kind = { runtime, ...options };
    const key = this.keyOf(kind);
    this.#kinds.set(key, kind);
    this.#keys.set(image.digest, key);
    forgetOldest(this.#keys, maxImages);
    this.#demand.add(key, startedAt);
    this.#isChanged = true;
    if (!this.#working && !this.#isDue) this.#lookSoon();
  }

  async #learn(image: LocalImage): Promise<RuntimeCopy | undefined> {
    const known = this.#runtimes.get(image.digest);
    if (known !== undefined) return known ?? undefined;
    // They stay as long as the platform: a container may load parts of its runtime late.
    if (listNames(this.#runtimesDir).length >= maxRuntimes) return undefined;
    const runtime = await copyRuntime(image, this.#runtimesDir, this.#options.isShipped).catch(
      (error: unknown) => {
        const { log } = this.#options;
        log.warn({ error: messageOf(error) }, "copying a runtime for warm processes failed");
        return undefined;
      },
    );
    forgetOldest(this.#runtimes, maxImages);
    this.#runtimes.set(image.digest, runtime ?? null);
    return runtime;
  }

  /** One start after the other must not put it off for ever. */
  #lookSoon(): void {
    this.#lookAfter(pauseMs);
    this.#isDue = true;
  }

  #lookAfter(ms: number): void {
    this.#cancel();
    this.#isDue = false;
    this.#cancel = this.#options.clock.after(ms, () => this.#look());
  }

  #look(): void {
    this.#isChanged = false;
    this.#isDue = false;
    this.#working = this.#fit().finally(() => {
      this.#working = undefined;
      if (this.#closing.signal.aborted) return;
      if (this.#isChanged) this.#lookSoon();
      else this.#lookAfter(lookMs);
    });
  }

  /** Ends what is not wanted any more, and starts what is missing, one after the other. */
  async #fit(): Promise<void> {
    const { clock, log } = this.#options;
    const wanted = this.#demand.wanted(clock.elapsed());
    for (const key of this.#kinds.keys()) if (!wanted.has(key)) this.#kinds.delete(key);
    const kept = new Map<string, number>();
    for (const each of this.#waiting) {
      const count = (kept.get(each.key) ?? 0) + 1;
      if (each.isOver || count > (wanted.get(each.key) ?? 0) || !this.#hasMemory())
        this.#drop(each);
      else kept.set(each.key, count);
    }
    for (const [key, count] of wanted) {
      const kind = this.#kinds.get(key);
      if (!kind) continue;
      for (let has = kept.get(key) ?? 0; has < count; has++) {
        if (this.#closing.signal.aborted || !this.#hasMemory() || this.#isGivenUp(key)) break;
        const problem = await this.#start(key, kind).catch(messageOf);
        if (problem === undefined) continue;
        this.giveUp(key);
        log.warn({ problem }, "a warm process could not be started");
      }
    }
  }

  /** Returns why there is none. */
  async #start(key: string, kind: StartOptions): Promise<string | undefined> {
    const { start, clock } = this.#options;
    const id = `warm-${randomBytes(8).toString("hex")}`;
    const process = await start(id, key, kind);
    const end = new AbortController();
    const outcome = await Promise.race<string | void>([
      process.waiting,
      process.exited.then(({ exitCode }) => `it ended with ${exitCode}`),
      sleep(clock, startMs, AbortSignal.any([end.signal, this.#closing.signal])).then(
        () => `it did not wait within ${startMs / 1000} s`,
      ),
    ]).catch(messageOf);
    end.abort();
    if (outcome === undefined && !this.#closing.signal.aborted) this.#waiting.add(process);
    else await this.#end(process);
    return outcome ?? undefined;
  }

  #isGivenUp(key: string): boolean {
    const until = this.#givenUp.get(key) ?? 0;
    return this.#options.clock.elapsed() < until;
  }

  #hasMemory(): boolean {
    const { freeMemory = freemem } = this.#options;
    return freeMemory() >= totalmem() * leastFreeMemory;
  }

  #drop(process: W): void {
    this.#waiting.delete(process);
    const ending = this.#end(process)
      .catch((error: unknown) => {
        this.#options.log.warn({ error: messageOf(error) }, "ending a warm process failed");
      })
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #end(process: W): Promise<void> {
    await process.end();
    this.#options.release(process);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancel();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    await Promise.all(waiting.map((each) => this.#end(each)));
    await this.#working;
    await Promise.all(this.#ending);
  }
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  for (const key of map.keys()) {
    if (map.size <= max) return;
    map.delete(key);
  }
}
