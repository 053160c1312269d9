/** Keeps a session in step with its directory: what a saved file means, and what then has to be done. */
import { statSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { type BuildError } from "@spry/image";
import { listPresent, type SourceList } from "../project/files.ts";
import { compilerProblems, formatProblem } from "../deploy/check-syntax.ts";
import { compile, goesBeyondTypes, needsCompiling } from "../project/compile.ts";
import { mayNeedBundling } from "../project/local-imports.ts";
import { hasBuildScript, type Project } from "../project/project.ts";
import { CompiledHook } from "./compiled-hook.ts";
import { configName } from "../project/schema.ts";
import { shownPath } from "../project/shown-path.ts";
import { UserError } from "../user-error.ts";
import { isManifest, mayBeInstalled, type Packages, providePackages } from "./dependencies.ts";
import { explained, isFileError } from "./file-errors.ts";
import { type Neighbours } from "./neighbours.ts";
import { notSent } from "./not-sent.ts";
import { OwnWrites, type Verdict } from "./own-writes.ts";
import { cacheDir } from "./places.ts";
import { type RuntimeProgram } from "./runtime-program.ts";
import { Session, type SessionEvents } from "./session.ts";
import { sessionPlan } from "./session-plan.ts";
import { SourceWatch } from "./watch-source.ts";

export interface DevRunnerOptions {
  /** Looks at the directory, again after each change of its settings. */
  open: () => Project;
  /** The runtime, which several Functions share. */
  programOf: (runtime: Runtime) => Promise<RuntimeProgram>;
  /** Directory of a `spry.yaml` with several Functions, if it is not this one's own: its `.env` is for all of them. */
  above?: string | undefined;
  scratch: string;
  namespace: string;
  publisher: string;
  client: KubeClient | undefined;
  /** Port of the debugger, and whether to wait for one. */
  inspect: { port: number | undefined; wait: boolean } | undefined;
  events: SessionEvents;
  report: (line: string) => void;
  /** A file has been saved; its path in the directory. */
  onChange?: (file: string) => void;
}

export interface Interpreter {
  command: string;
  /** Of Python the program that runs a module of tests. */
  moduleRunner: string;
  /** Directory of installed packages. */
  modules: string | undefined;
}

const settleMs = 5;
/** Nothing has changed for so long: then what changed while code was loaded is a reason to load it again. */
const quietMs = 250;
/** Files that vanish while they are read are read again, so often. */
const maxTries = 5;

export class DevRunner {
  readonly session: Session;
  #project: Project | undefined;
  #packages: Packages | undefined;
  #program: RuntimeProgram | undefined;
  #neighbours: Neighbours | undefined;
  readonly #options: DevRunnerOptions;
  #watch: SourceWatch | undefined;
  readonly #compiled: CompiledHook;
  /** Files that changed since the last preparation. */
  readonly #changed = new Set<string>();
  #preparing: Promise<void> | undefined;
  #tries = 0;
  #noted = new Set<string>();
  /** What runs is made of the files. */
  #isCompiled = false;
  readonly #ownWrites: OwnWrites;
  #later: NodeJS.Timeout | undefined;

  constructor(options: DevRunnerOptions) {
    this.#options = options;
    const { events, report } = options;
    this.session = new Session(
      {
        ...events,
        onLoaded: (files, since) => this.#addLoaded(files, since),
        onWritten: (files) => this.#ownWrites.add(files, this.#project?.root),
      },
      options.scratch,
    );
    this.#compiled = new CompiledHook(options.scratch);
    this.#ownWrites = new OwnWrites((file) =>
      report(
        `${file} is written by the code: that does not load it again. On the platform the directory is read-only`,
      ),
    );
  }

  /** Makes everything ready and loads the code. A directory that cannot be run at all is a UserError. */
  async start(neighbours: Neighbours): Promise<void> {
    this.#neighbours = neighbours;
    await this.#start();
  }

  async #start(): Promise<void> {
    const project = this.#options.open();
    this.#program = await this.#options.programOf(project.runtime);
    this.#project = project;
    this.#watchAgain(project);
    await this.#prepare(project);
  }

  /** Undefined until it has been started. */
  get project(): Project | undefined {
    return this.#project;
  }

  /** What tests of Python run with: that of the code, and where its packages are. */
  get interpreter(): Interpreter | undefined {
    if (!this.#program) return undefined;
    const modules = this.#packages?.kind === "cache" ? this.#packages.modules : undefined;
    const { command, script } = this.#program;
    return { command, moduleRunner: path.join(path.dirname(script), "run_module.py"), modules };
  }

  /** Loads everything again; starts what could not be started before. */
  restart(): void {
    this.#changed.add(configName);
    this.#prepareAgain();
  }

  /** Requests are answered with an error until the next `restart`. */
  fail(error: UserError | BuildError): void {
    const wayOut = error instanceof UserError ? error.wayOut : undefined;
    const [summary = "", ...rest] = error.message.split("\n");
    const details = [...rest, ...(wayOut ? [wayOut] : [])].join("\n");
    this.session.fail({ summary, details, ...(wayOut !== undefined && { wayOut }) });
  }

  #watchAgain({ root, handler }: Project): void {
    this.#watch?.close();
    this.#watch = new SourceWatch(root, {
      handler,
      // The process says what it writes before it does; both may come in one round of the event loop.
      onChange: (file) => void setImmediate(() => this.#onChange(file)),
      report: this.#options.report,
    });
  }

  /** Those of the runtime and of installed packages in the cache do not change. */
  #addLoaded(files: readonly string[], since: number): void {
    const places = [cacheDir(), this.#options.scratch];
    const isFixed = (file: string) => places.some((place) => file.startsWith(place + path.sep));
    this.#watch?.addLoaded(
      files.filter((file) => path.isAbsolute(file) && !isFixed(file)),
      since,
    );
  }

  async close(): Promise<void> {
    clearTimeout(this.#later);
    this.#watch?.close();
    await this.session.close();
    if (this.#isCompiled) await (await import("esbuild")).stop();
  }

  #onChange(file: string): void {
    // Of several Functions it says which are concerned (`settings-watch.ts`).
    if (file === configName && this.#options.above !== undefined) return;
    const isSettings = file === configName || file === ".env" || isManifest(file);
    const verdict = isSettings ? "reload" : this.#judge(file);
    if (verdict === "nothing") return;
    if (this.#later || verdict === "later") return this.#loadLater(file);
    this.#options.onChange?.(file);
    this.#load(file, isSettings);
  }

  #judge(file: string): Verdict {
    const place = path.join(this.#project?.root ?? "", file);
    const time = statSync(place, { throwIfNoEntry: false })?.ctimeMs ?? Date.now();
    return this.#ownWrites.judge(file, this.session.loadAt(time), time);
  }

  /** Once nothing changes any more. */
  #loadLater(file: string): void {
    this.session.hold();
    this.#later?.refresh();
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#ownWrites.beginLater();
      this.#options.onChange?.(file);
      this.#load(configName, true);
    }, quietMs);
  }

  #load(file: string, isSettings: boolean): void {
    this.#changed.add(file);
    const place = path.join(this.#project?.root ?? "", file);
    const isCompiled =
      this.#isCompiled ||
      goesBeyondTypes({ path: file, file: place }) ||
      mayNeedBundling({ file: place });
    const isInstalled = file.includes("node_modules/");
    const isRead = isSettings || mayBeInstalled(file);
    if (isRead || isInstalled || isCompiled || this.#preparing || !this.#packages)
      this.#prepareAgain();
    else void this.session.restart();
  }

  #prepareAgain(): void {
    this.session.hold();
    const project = this.#project;
    this.#preparing ??= (project ? this.#prepare(project) : this.#startAgain()).finally(() => {
      this.#preparing = undefined;
      if (this.#changed.size > 0) this.#prepareAgain();
    });
  }

  async #startAgain(): Promise<void> {
    this.#changed.clear();
    try {
      await this.#start();
    } catch (error) {
      this.fail(explained(error));
    }
  }

  async #prepare(before: Project): Promise<void> {
    // A save can be several writes.
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    this.#changed.clear();
    try {
      const project = this.#options.open();
      if (project.runtime.name !== before.runtime.name)
        throw new UserError(
          `the runtime is now ${project.runtime.name}`,
          "end spry dev and start it again",
        );
      if (project.root !== before.root)
        throw new UserError(
          `the Function's directory is now ${shownPath(project.root)}`,
          "end spry dev and start it again",
        );
      this.#project = project;
      if (project.handler !== before.handler) this.#watchAgain(project);
      const source = listPresent(project.root, { handler: project.handler });
      this.#noteNotSent(project, source);
      this.#packages = await providePackages(project, source, {
        bin: this.#programNow().bin,
        scratch: this.#options.scratch,
        report: this.#options.report,
        isInspected: this.#options.inspect !== undefined,
      });
      await this.#compile(project, source);
      const plan = await sessionPlan(project, {
        ...this.#options,
        program: this.#programNow(),
        packages: this.#packages,
        neighbours: this.#neighbours,
        compiled: this.#isCompiled ? this.#compiled.file : undefined,
      });
      // Something else has been saved meanwhile, and is prepared next.
      if (this.#changed.size > 0) return;
      this.#tries = 0;
      await this.session.restart(plan);
    } catch (error) {
      if (this.#changed.size > 0) return;
      // A file that was there a moment ago.
      if (isFileError(error) && ++this.#tries < maxTries) this.#changed.add(configName);
      else this.fail(explained(error));
    }
  }

  #noteNotSent({ root }: Project, source: SourceList): void {
    // What a build script makes is made again in the image.
    const lines = notSent(hasBuildScript(root) ? { ...source, remark: undefined } : source);
    for (const line of lines) if (!this.#noted.has(line)) this.#options.report(line);
    this.#noted = new Set(lines);
  }

  #programNow(): RuntimeProgram {
    if (!this.#program) throw new Error("the runner was not started");
    return this.#program;
  }

  async #compile(project: Project, { files }: SourceList): Promise<void> {
    this.#isCompiled = needsCompiling(project, files);
    if (!this.#isCompiled) return this.#compiled.use(undefined);
    try {
      const handler = path.join(project.root, project.handler);
      this.#compiled.use({ handler, code: await compile(project) });
    } catch (error) {
      const [first, ...others] = compilerProblems(error).map((each) => formatProblem(each));
      if (first === undefined) throw error;
      throw new UserError([first, ...others].join("\n"));
    }
  }
}
