/** Upper bounds in milliseconds: those of the contract's runtimes. */
const bounds = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/** Counts calls as the contract names them; the misspelt duration is part of its name. */
export class Metrics {
  readonly #buckets = Array.from({ length: bounds.length + 1 }, () => 0);
  readonly #labels: string;
  #calls = 0;
  #failures = 0;
  #durationSum = 0;
  #settled = 0;
  /** From the start of the process until it was ready. */
  startSeconds = 0;

  constructor(functionName: string) {
    this.#labels = `service_name="${functionName.replace(/["\\\n]/g, "")}"`;
  }

  get calls(): number {
    return this.#calls;
  }

  begin(): void {
    this.#calls++;
  }

  /** The call that has begun turned out to be none. */
  withdraw(): void {
    this.#calls--;
  }

  /** The handler has settled, after `ms` milliseconds. */
  settle(ms: number, failed: boolean): void {
    if (failed) this.#failures++;
    let index = 0;
    while (index < bounds.length && ms > (bounds[index] ?? 0)) index++;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    this.#durationSum += ms;
    this.#settled++;
  }

  /** Prometheus' text exposition format 0.0.4. */
  toText(): string {
    const lines = [
      "# HELP target_info Target metadata",
      "# TYPE target_info gauge",
      `target_info{${this.#labels}} 1`,
      "# HELP function_calls_total Number of calls to user function",
      "# TYPE function_calls_total counter",
      `function_calls_total ${this.#calls}`,
      "# HELP function_failures_total Number of exceptions in user function",
      "# TYPE function_failures_total counter",
      `function_failures_total ${this.#failures}`,
      "# HELP function_duration_miliseconds Duration of user function in miliseconds",
      "# TYPE function_duration_miliseconds histogram",
    ];
    let cumulative = 0;
    for (const [index, count] of this.#buckets.entries()) {
      cumulative += count;
      const bound = bounds[index] ?? "+Inf";
      lines.push(`function_duration_miliseconds_bucket{le="${bound}"} ${cumulative}`);
    }
    lines.push(`function_duration_miliseconds_sum ${this.#durationSum}`);
    lines.push(`function_duration_miliseconds_count ${this.#settled}`);
    lines.push(
      "# HELP function_in_flight_requests Calls of user function that have not settled",
      "# TYPE function_in_flight_requests gauge",
      `function_in_flight_requests ${this.#calls - this.#settled}`,
      "# HELP function_start_seconds Time from the start of the process until it was ready",
      "# TYPE function_start_seconds gauge",
      `function_start_seconds ${this.startSeconds}`,
    );
    return `${lines.join("\n")}\n`;
  }
}
