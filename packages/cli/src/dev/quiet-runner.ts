/** Functions that run for another command, such as their tests: without keys and pages. */
import { type Failure } from "../load-failure.ts";
import { projectOf, type Target } from "../project/targets.ts";
import { UserError } from "../user-error.ts";
import { AllowedHosts } from "./allowed-hosts.ts";
import { DevFunction } from "./dev-function.ts";
import { type Interpreter } from "./dev-runner.ts";
import { type FailureReport } from "./load-report.ts";
import { type DevOutput } from "./output.ts";
import { portsFrom } from "./ports.ts";
import { Programs } from "./programs.ts";
import { startAll } from "./start-all.ts";

export interface QuietRun {
  /** Of each Function, by its name. */
  urls: Record<string, string>;
  interpreters: Record<string, Interpreter | undefined>;
  stop(): Promise<void>;
}

/** Loads the Functions' code; each listens on a free port. Throws a UserError when that of one cannot be loaded. */
export async function runQuietly(
  targets: readonly Target[],
  report: (line: string) => void,
): Promise<QuietRun> {
  const programs = new Programs(report);
  const all: DevFunction[] = [];
  const outputs = targets.map(() => new QuietOutput(report));
  const stop = async () => {
    await Promise.all(all.map((each) => each.close()));
  };
  process.on("exit", () => all.forEach((each) => each.kill()));
  try {
    const listen = portsFrom(0, targets.length === 1);
    for (const [index, target] of targets.entries()) {
      const { namespace = "default" } = projectOf(target).config;
      const opened = await DevFunction.open(
        {
          target,
          namespace,
          output: outputs[index] ?? new QuietOutput(report),
          allowed: new AllowedHosts(),
          cluster: undefined,
          inspect: undefined,
          programs,
        },
        listen,
      );
      all.push(opened);
    }
    await startAll(all, { targets });
    for (const [index, { failure }] of outputs.entries())
      if (failure !== undefined) {
        const name = targets.length === 1 ? "" : `${targets[index]?.name}: `;
        throw new UserError(name + failure, "its tests were not run");
      }
  } catch (error) {
    await stop();
    throw error;
  }
  const urls = Object.fromEntries(all.map(({ name, url }) => [name, url]));
  const interpreters = Object.fromEntries(
    all.map(({ name, runner }) => [name, runner.interpreter] as const),
  );
  return { urls, interpreters, stop };
}

/** What the Functions write, and what is wrong with them. */
class QuietOutput implements DevOutput {
  readonly #report: (line: string) => void;
  failure: string | undefined;

  constructor(report: (line: string) => void) {
    this.#report = report;
  }

  failed({ summary }: Failure, report?: FailureReport): void {
    if (report) process.stderr.write(report.raw);
    this.failure ??= summary;
  }

  output(chunk: Buffer): void {
    process.stderr.write(chunk);
  }

  note(text: string): void {
    this.#report(text);
  }

  problem(text: string): void {
    this.#report(text);
  }

  crashed(sentence: string): void {
    this.#report(sentence);
  }

  of(): this {
    return this;
  }

  begin(): void {}
  ready(): void {}
  allReady(): void {}
  changed(): void {}
  reloaded(): void {}
  request(): void {}
  clear(): void {}
  stopped(): void {}
}
