/** One Function of `spry dev`: a port, the processes behind it, and the names under which it calls others. */
import { existsSync, mkdtempSync, rmSync, watch } from "node:fs";
import { type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Runtime } from "@spry/function";
import { BuildError } from "@spry/image";
import { type Connection } from "../connection.ts";
import { type Target } from "../project/targets.ts";
import { UserError } from "../user-error.ts";
import { type AllowedHosts } from "./allowed-hosts.ts";
import { DevRunner, type DevRunnerOptions } from "./dev-runner.ts";
import { callOnSchedule, emit, exampleEvent, startCollector } from "./events.ts";
import { createFrontServer } from "./front-server.ts";
import { endProcessesWithHome } from "./left-over.ts";
import { openNeighbours } from "./neighbours.ts";
import { limitationOf } from "./not-sent.ts";
import { type DevOutput, type Listed } from "./output.ts";
import { type Programs } from "./programs.ts";

/** A save can be several writes. */
const settleMs = 20;

export interface DevFunctionOptions {
  target: Pick<Target, "name" | "base" | "directory" | "isMember" | "open">;
  namespace: string;
  output: DevOutput;
  allowed: AllowedHosts;
  /** A platform, where one is reachable. */
  cluster: Pick<Connection, "client" | "gateway"> | undefined;
  inspect: DevRunnerOptions["inspect"];
  programs: Programs;
}

export class DevFunction {
  readonly name: string;
  readonly target: DevFunctionOptions["target"];
  readonly namespace: string;
  readonly runner: DevRunner;
  readonly #output: DevOutput;
  readonly #cluster: DevFunctionOptions["cluster"];
  readonly #programs: Programs;
  readonly #scratch: string;
  readonly #server: Server;
  readonly #cleanups: (() => Promise<void> | void)[] = [];
  #port = 0;
  #isLoaded = false;
  /** Until the first code could be loaded, or could not. */
  #isFirst = true;

  private constructor(options: DevFunctionOptions, publisher: string, scratch: string) {
    const { target, namespace, output, allowed, cluster } = options;
    this.name = target.name;
    this.target = target;
    this.namespace = namespace;
    this.#output = output;
    this.#cluster = cluster;
    this.#programs = options.programs;
    this.#scratch = scratch;
    this.runner = new DevRunner({
      open: target.open,
      programOf: (runtime) => options.programs.of(runtime, scratch),
      above: target.isMember ? target.base : undefined,
      scratch,
      namespace,
      publisher,
      client: cluster?.client,
      inspect: options.inspect,
      report: (line) => output.note(line),
      onChange: (file) => output.changed(file),
      events: this.#events(),
    });
    this.#server = createFrontServer(this.runner.session, (line) => output.request(line), allowed);
    this.#cleanups.push(
      () => rmSync(scratch, { recursive: true, force: true }),
      () => void endProcessesWithHome(scratch),
      () => this.runner.close(),
      () => {
        this.#server.closeAllConnections();
        this.#server.close();
      },
    );
  }

  /** Listens on the port that `listen` chooses; requests wait there for `start`. */
  static async open(
    options: DevFunctionOptions,
    listen: (server: Server) => Promise<number>,
  ): Promise<DevFunction> {
    const collector = await startCollector((line) => options.output.note(line));
    const scratch = mkdtempSync(path.join(tmpdir(), "spry-dev-"));
    const opened = new DevFunction(options, collector.url, scratch);
    opened.#cleanups.push(() => collector.close());
    try {
      opened.#port = await listen(opened.#server);
    } catch (error) {
      await opened.close();
      throw error;
    }
    return opened;
  }

  /** For a user. */
  get url(): string {
    return `http://localhost:${this.#port}/`;
  }

  get listed(): Listed {
    return { name: this.name, url: this.url, isLoaded: this.#isLoaded };
  }

  /**
   * Loads the code, and returns which neighbours it can call. `named`: those that are not the platform's. `isAlone`: a directory that is
   * not a Function is a UserError; of several it is one of the answers.
   */
  async start(named: readonly string[], isAlone: boolean): Promise<readonly string[]> {
    const neighbours = await openNeighbours({
      named,
      namespace: this.namespace,
      scratch: this.#scratch,
      client: this.#cluster?.client,
      gateway: this.#cluster?.gateway,
    });
    this.#cleanups.push(() => neighbours.close());
    try {
      await this.runner.start(neighbours);
      const { project } = this.runner;
      const limitation = project && limitationOf(project);
      if (limitation) this.#output.note(limitation);
    } catch (error) {
      if (isAlone || !(error instanceof UserError || error instanceof BuildError)) throw error;
      this.runner.fail(error);
      if (!this.runner.project) this.#startWhenSaved();
    }
    this.#isFirst = false;
    return neighbours.names;
  }

  /** Makes the runtime ready; what is wrong with it comes with `start`. */
  async prepare(runtime: Runtime): Promise<void> {
    await this.#programs.of(runtime, this.#scratch).catch(() => {});
  }

  restart(): void {
    this.runner.restart();
  }

  /** Sends the event of its `event.json`. */
  sendExample(): Promise<void> {
    return this.#reporting(async () => {
      const event = exampleEvent(this.runner.project?.root ?? this.target.base);
      const { type, source } = JSON.parse(event) as Record<string, unknown>;
      this.#output.note(`emitting ${String(type)} from ${String(source)}`);
      await emit(this.url, event);
    });
  }

  /** Calls it as its first schedule does. */
  callOnSchedule(): Promise<void> {
    return this.#reporting(async () => {
      const [schedule] = this.runner.project?.config.schedules ?? [];
      const name = schedule ? `schedule ${schedule.name}` : "a schedule";
      const status = await callOnSchedule(this.url, schedule);
      this.#output.note(`called as by ${name}: HTTP ${status}`);
    });
  }

  async close(): Promise<void> {
    for (const step of this.#cleanups.splice(0).reverse()) await step();
  }

  /** At once, for a process that is ending itself. */
  kill(): void {
    this.runner.session.kill();
    endProcessesWithHome(this.#scratch);
  }

  /** Until its directory is a Function, of which the runner watches the files. */
  #startWhenSaved(): void {
    const { directory } = this.target;
    if (!existsSync(directory)) return;
    let timer: NodeJS.Timeout | undefined;
    const watcher = watch(directory, () => {
      clearTimeout(timer);
      if (this.runner.project) watcher.close();
      else timer = setTimeout(() => this.restart(), settleMs);
    });
    watcher.on("error", () => watcher.close());
    this.#cleanups.push(() => {
      clearTimeout(timer);
      watcher.close();
    });
  }

  #events(): DevRunnerOptions["events"] {
    const output = this.#output;
    return {
      onOutput: (chunk, stream) => output.output(chunk, stream),
      onReady: (ms) => {
        if (!this.#isFirst) output.reloaded(ms);
        this.#isFirst = false;
        this.#isLoaded = true;
      },
      onFailure: (failure, report) => {
        this.#isLoaded = false;
        output.failed(failure, report);
      },
      onCrash: (sentence) => output.crashed(sentence),
    };
  }

  async #reporting(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#output.problem(error instanceof Error ? error.message : String(error));
    }
  }
}
