import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Clock, type Logger, messageOf } from "@spry/kube";
import { listNames } from "../sandbox/records.ts";

/** What stands on disk of a Pod while its start is under way, and for as long as it is under suspicion. */
interface StartNote {
  /** `namespace/name`, for the log. */
  pod: string;
  /** How often in a row an agent has ended while the start was under way. */
  deaths: number;
  isUnderWay: boolean;
}

export interface PodStartsOptions {
  /** For the notes alone. */
  dir: string;
  clock: Clock;
  log: Logger;
}

/** What a suspect has to wait for. */
export interface Suspicion {
  /** In a sentence for the Pod's status. */
  message: string;
  /** When to ask again. */
  ms: number;
}

/** So long others get to begin their starts before the first suspect. */
const settleMs = 1_000;
/** A start that takes longer than this holds up no suspect any more: its image may come slowly. */
const slowMs = 30_000;
/** A note stays for a moment: several steps of one start are one note, and what a start has left may end the agent, too. */
const keptMs = 1_000;
const pollMs = 250;
/** Before the attempt after the second death in a row, and after each further one twice as much. */
const backOffMs = { first: 10_000, last: 300_000 };

/**
 * Which Pods are being started, on disk, so that a Pod whose start ends the agent does not end the next one before others run: what
 * was under way when an agent died is tried last, one Pod at a time. Notes are not flushed to the disk: they have to outlive this
 * process, not the machine.
 */
export class PodStarts {
  readonly #options: PodStartsOptions;
  readonly #notes = new Map<string, StartNote>();
  /** Pod's uid → how many of its steps are under way, and since when. */
  readonly #underWay = new Map<string, { steps: number; since: number }>();
  /** Pods that were being started when an agent ended, and have not been since. */
  readonly #suspects = new Set<string>();
  #openedAt = 0;
  #isReleased = false;

  constructor(options: PodStartsOptions) {
    this.#options = options;
  }

  /** Reads what an earlier agent has left. */
  open(): void {
    const { dir, log } = this.#options;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const uid of listNames(dir)) {
      const left = this.#read(uid);
      const note = { ...left, deaths: left.deaths + (left.isUnderWay ? 1 : 0), isUnderWay: false };
      this.#notes.set(uid, note);
      this.#suspects.add(uid);
      this.#write(uid, note);
      const { pod, deaths } = note;
      log.warn(
        { pod, uid, deaths },
        "the platform ended while this Pod was being started: it is tried after all others, alone",
      );
    }
    this.begun();
  }

  /** From now on others begin. */
  begun(): void {
    this.#openedAt = this.#options.clock.elapsed();
  }

  /** Forgets Pods that are no longer here. */
  keepOnly(isHere: (uid: string) => boolean): void {
    for (const uid of this.#notes.keys()) if (!isHere(uid)) this.forget(uid);
  }

  /** Undefined for a Pod that may begin now. */
  suspicion(uid: string): Suspicion | undefined {
    const note = this.#notes.get(uid);
    if (!note || !this.#suspects.has(uid)) return undefined;
    const now = this.#options.clock.elapsed();
    const { first, last } = backOffMs;
    const pauseMs = note.deaths < 2 ? settleMs : Math.min(first * 2 ** (note.deaths - 2), last);
    const left = this.#openedAt + pauseMs - now;
    const isOtherUnderWay = [...this.#underWay].some(
      ([other, { since }]) => other !== uid && now - since < slowMs,
    );
    if (left <= 0 && !isOtherUnderWay) return undefined;
    const times = note.deaths === 1 ? "" : ` ${note.deaths} times in a row`;
    const message = `the platform ended${times} while this Pod was being started: it is tried after all others, alone`;
    return { message, ms: Math.max(left, pollMs) };
  }

  /** A step of the Pod's start begins, which ends with `end`. */
  begin(uid: string, pod: string): void {
    if (this.#isReleased) return;
    const known = this.#underWay.get(uid);
    if (known) {
      known.steps++;
      return;
    }
    this.#underWay.set(uid, { steps: 1, since: this.#options.clock.elapsed() });
    this.#suspects.delete(uid);
    const note = { pod, deaths: this.#notes.get(uid)?.deaths ?? 0, isUnderWay: true };
    this.#notes.set(uid, note);
    this.#write(uid, note);
  }

  end(uid: string): void {
    const known = this.#underWay.get(uid);
    if (!known || --known.steps > 0) return;
    this.#options.clock.after(keptMs, () => {
      if (this.#underWay.get(uid) === known && known.steps === 0) this.forget(uid);
    });
  }

  /** The Pod is gone, or its start has done no harm. */
  forget(uid: string): void {
    this.#underWay.delete(uid);
    this.#suspects.delete(uid);
    if (this.#notes.delete(uid)) rmSync(this.#fileOf(uid), { force: true });
  }

  /** The agent ends as it should: what is under way has not ended it. */
  release(): void {
    this.#isReleased = true;
    for (const uid of this.#underWay.keys()) this.forget(uid);
  }

  #fileOf(uid: string): string {
    return path.join(this.#options.dir, uid);
  }

  #read(uid: string): StartNote {
    try {
      const note = JSON.parse(readFileSync(this.#fileOf(uid), "utf8")) as StartNote;
      const { pod, deaths, isUnderWay } = note;
      if (typeof pod === "string" && Number.isSafeInteger(deaths) && deaths >= 0)
        return { pod, deaths, isUnderWay: isUnderWay };
    } catch {
      // The machine went down, or the agent in the middle of writing.
    }
    return { pod: uid, deaths: 0, isUnderWay: true };
  }

  #write(uid: string, note: StartNote): void {
    try {
      writeFileSync(this.#fileOf(uid), JSON.stringify(note), { mode: 0o600 });
    } catch (error) {
      // Such as a full disk: Pods start all the same.
      const { log } = this.#options;
      log.debug({ pod: note.pod, error: messageOf(error) }, "noting a Pod's start failed");
    }
  }
}
