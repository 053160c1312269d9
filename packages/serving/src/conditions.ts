import { type Clock, type Condition, getCondition, setCondition } from "@spry/kube";

/** Knative leaves the severity of what `Ready` depends on out, and marks the rest as information. */
export interface ServingCondition extends Condition {
  severity?: "Info";
}

const ready = "Ready";

/**
 * The conditions of one object: `Ready` follows from those that it depends on (knative.dev/pkg/apis, living condition sets).
 * False beats Unknown, and of several the one that changed last is reported.
 */
export class LivingConditions {
  readonly #dependents: readonly string[];
  readonly #clock: Clock;
  #conditions: ServingCondition[];

  constructor(
    dependents: readonly string[],
    current: readonly ServingCondition[] | undefined,
    clock: Clock,
  ) {
    this.#dependents = dependents;
    this.#clock = clock;
    this.#conditions = [...(current ?? [])];
    for (const type of [...dependents, ready]) {
      if (!this.get(type)) this.#set({ type, status: "Unknown" });
    }
  }

  /** Sorted by type, as Knative has them. */
  get list(): ServingCondition[] {
    return this.#conditions.toSorted((a, b) => (a.type < b.type ? -1 : 1));
  }

  get(type: string): ServingCondition | undefined {
    return getCondition(this.#conditions, type);
  }

  isTrue(type: string): boolean {
    return this.get(type)?.status === "True";
  }

  isFalse(type: string): boolean {
    return this.get(type)?.status === "False";
  }

  mark(type: string, status: Condition["status"], reason = "", message = ""): void {
    const words = { ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
    const isTerminal = type === ready || this.#dependents.includes(type);
    this.#set({ type, status, ...words, ...(isTerminal ? {} : { severity: "Info" }) });
    if (type !== ready && isTerminal) this.#deriveReady();
  }

  markTrue(type: string, reason = "", message = ""): void {
    this.mark(type, "True", reason, message);
  }

  markFalse(type: string, reason: string, message: string): void {
    this.mark(type, "False", reason, message);
  }

  markUnknown(type: string, reason = "", message = ""): void {
    this.mark(type, "Unknown", reason, message);
  }

  #deriveReady(): void {
    const all = this.#dependents.flatMap((type) => this.get(type) ?? []);
    const latest = all.toSorted((a, b) =>
      (a.lastTransitionTime ?? "") > (b.lastTransitionTime ?? "") ? -1 : 1,
    );
    const cause =
      latest.find(({ status }) => status === "False") ??
      latest.find(({ status }) => status === "Unknown");
    if (!cause) return this.#set({ type: ready, status: "True" });
    const { status, reason, message } = cause;
    this.#set({
      type: ready,
      status,
      ...(reason ? { reason } : {}),
      ...(message ? { message } : {}),
    });
  }

  #set(condition: ServingCondition): void {
    this.#conditions = setCondition(this.#conditions, condition, this.#clock);
  }
}
