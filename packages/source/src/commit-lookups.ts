import { hash } from "node:crypto";
import { type Clock, type ObjectKey } from "@spry/kube";
import { GitError } from "./git-error.ts";
import { type CommitQuestion } from "./resolve-commit.ts";

/** What a server said last. */
export type CommitAnswer = { commit: string } | { error: GitError };

export interface Interest {
  /** How old an answer may become; 0: as old as it likes. */
  intervalMs: number;
  /** Another text than before asks for a new answer at once. */
  demand: string;
}

interface Lookup {
  readonly id: string;
  readonly question: CommitQuestion;
  readonly users: Map<ObjectKey, Interest & { isWaiting: boolean }>;
  answer?: CommitAnswer;
  failures: number;
  checkedAt: number;
  state: "idle" | "queued" | "running";
  /** Requested again while it was running. */
  again: boolean;
  cancelTimer: () => void;
}

const firstRetryMs = 30_000;
const lastRetryMs = 300_000;

/**
 * What Git servers say about the references of Functions, kept up to date: asked again after an
 * interval, after failures later and later. Functions that ask the same share one question, and
 * only a few questions are under way at a time. Nothing waits here: those whom an answer concerns are woken.
 */
export class CommitLookups {
  readonly #resolve: (question: CommitQuestion) => Promise<string>;
  readonly #wake: (user: ObjectKey) => void;
  readonly #clock: Clock;
  readonly #max: number;
  readonly #lookups = new Map<string, Lookup>();
  readonly #idOf = new Map<ObjectKey, string>();
  readonly #queue = new Set<Lookup>();
  readonly #running = new Set<Lookup>();

  constructor(options: {
    resolve: (question: CommitQuestion) => Promise<string>;
    wake: (user: ObjectKey) => void;
    clock: Clock;
    /** Questions under way at a time. */
    max: number;
  }) {
    this.#resolve = options.resolve;
    this.#wake = options.wake;
    this.#clock = options.clock;
    this.#max = options.max;
  }

  /**
   * The last result, if there is one that is recent enough for this user. Notifications about earlier requests of the
   * user end.
   */
  ask(
    user: ObjectKey,
    question: CommitQuestion,
    interest: Interest,
  ): { answer?: CommitAnswer | undefined; isDemanded: boolean } {
    const id = idOf(question);
    if (this.#idOf.get(user) !== id) this.forget(user);
    const lookup = this.#lookups.get(id) ?? this.#create(id, question);
    const before = lookup.users.get(user);
    const isDemanded = before !== undefined && before.demand !== interest.demand;
    const isWaiting = isDemanded || (before?.isWaiting ?? false);
    lookup.users.set(user, { ...interest, isWaiting });
    this.#idOf.set(user, id);
    if (isDemanded || (!lookup.answer && lookup.state === "idle")) this.#start(lookup);
    else if (before?.intervalMs !== interest.intervalMs) this.#schedule(lookup);
    return { answer: isWaiting ? undefined : lookup.answer, isDemanded: isWaiting };
  }

  /** The user asks no more. */
  forget(user: ObjectKey): void {
    const lookup = this.#lookups.get(this.#idOf.get(user) ?? "");
    this.#idOf.delete(user);
    lookup?.users.delete(user);
    if (!lookup || lookup.users.size > 0) return;
    lookup.cancelTimer();
    this.#lookups.delete(lookup.id);
  }

  #create(id: string, question: CommitQuestion): Lookup {
    const lookup: Lookup = {
      id,
      question,
      users: new Map(),
      failures: 0,
      checkedAt: 0,
      state: "idle",
      again: false,
      cancelTimer: () => {},
    };
    this.#lookups.set(id, lookup);
    return lookup;
  }

  #start(lookup: Lookup): void {
    lookup.cancelTimer();
    if (lookup.state === "running") lookup.again = true;
    if (lookup.state !== "idle") return;
    lookup.state = "queued";
    this.#queue.add(lookup);
    this.#next();
  }

  #next(): void {
    while (this.#running.size < this.#max) {
      const lookup = this.#mostUrgent();
      if (!lookup) return;
      this.#queue.delete(lookup);
      // All callers have gone away.
      if (lookup.users.size === 0) continue;
      this.#running.add(lookup);
      lookup.state = "running";
      void this.#check(lookup);
    }
  }

  /**
   * Of what waits longest, one of the namespace with the fewest questions under way: servers that
   * do not answer keep up only those who asked them.
   */
  #mostUrgent(): Lookup | undefined {
    const busy = [...this.#running].map(namespaceOf);
    const load = (lookup: Lookup) => busy.filter((each) => each === namespaceOf(lookup)).length;
    let best: Lookup | undefined;
    for (const lookup of this.#queue) if (!best || load(lookup) < load(best)) best = lookup;
    return best;
  }

  async #check(lookup: Lookup): Promise<void> {
    let answer: CommitAnswer;
    try {
      answer = { commit: await this.#resolve(lookup.question) };
    } catch (cause) {
      const error =
        cause instanceof GitError
          ? cause
          : new GitError("temporary", "asking the server", { cause });
      answer = { error };
    }
    this.#running.delete(lookup);
    lookup.state = "idle";
    lookup.checkedAt = this.#clock.elapsed();
    lookup.failures = "error" in answer ? lookup.failures + 1 : 0;
    if (lookup.again) {
      lookup.again = false;
      this.#start(lookup);
    } else this.#tell(lookup, answer);
    this.#next();
  }

  #tell(lookup: Lookup, answer: CommitAnswer): void {
    const isNews = !lookup.answer || textOf(lookup.answer) !== textOf(answer);
    lookup.answer = answer;
    for (const [user, interest] of lookup.users) {
      if (isNews || interest.isWaiting) this.#wake(user);
      interest.isWaiting = false;
    }
    this.#schedule(lookup);
  }

  /** When to ask again: never after what only another question can put right. */
  #schedule(lookup: Lookup): void {
    const { answer, users, failures, state } = lookup;
    lookup.cancelTimer();
    if (!answer || state !== "idle" || users.size === 0) return;
    const intervals = [...users.values()].map(({ intervalMs }) => intervalMs || Infinity);
    let pause = Math.min(...intervals);
    if ("error" in answer) {
      if (answer.error.failure === "unrecoverable") return;
      pause = Math.min(firstRetryMs * 2 ** Math.min(failures - 1, 10), lastRetryMs);
    }
    if (pause === Infinity) return;
    const ms = Math.max(0, lookup.checkedAt + pause - this.#clock.elapsed());
    lookup.cancelTimer = this.#clock.after(ms, () => this.#start(lookup));
  }
}

/** Functions of several namespaces can share a question; it counts for the first. */
function namespaceOf({ users }: Lookup): string {
  const [first = ""] = users.keys();
  return first.slice(0, Math.max(0, first.indexOf("/")));
}

/** Hashed, because credentials are part of a question. */
function idOf({ url, reference, credentials }: CommitQuestion): string {
  return hash("sha256", JSON.stringify([url, reference, credentials]));
}

function textOf(answer: CommitAnswer): string {
  return "commit" in answer ? answer.commit : `${answer.error.failure} ${answer.error.message}`;
}
