/** Keeps a session in step with its directory: what a saved file means, and what then has to be done. */
import path from "node:path";
import { type Runtime } from "@spry/function";
import { messageOf, type KubeClient } from "@spry/kube";
import { BuildError } from "@spry/image";
import { listSource, type SourceList } from "../project/files.ts";
import { compilerProblems, formatProblem } from "../deploy/check-syntax.ts";
import { compile, goesBeyondTypes, needsCompiling } from "../project/compile.ts";
import { hasBuildScript, type Project } from "../project/project.ts";
import { CompiledHook } from "./compiled-hook.ts";
import { configName } from "../project/schema.ts";
import { shownPath } from "../project/shown-path.ts";
import { UserError } from "../user-error.ts";
import { isManifest, type Packages, providePackages, writeResolveHook } from "./dependencies.ts";
import { environmentFor } from "./environment.ts";
import { defaultInspectPorts } from "./inspect-ports.ts";
import { type Neighbours } from "./neighbours.ts";
import { type RuntimeProgram } from "./runtime-program.ts";
import { Session, type SessionEvents, type SessionPlan } from "./session.ts";
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

const settleMs = 5;

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
  /** What runs is made of the files. */
  #isCompiled = false;

  constructor(options: DevRunnerOptions) {
    this.#options = options;
    this.session = new Session(options.events, options.scratch);
    this.#compiled = new CompiledHook(options.scratch);
  }

  /** Makes everything ready and loads the code. A directory that cannot be run at all is a UserError. */
  async start(neighbours: Neighbours): Promise<void> {
    this.#neighbours = neighbours;
    await this.#start();
  }

  async #start(): Promise<void> {
    const project = this.#options.open();
    const source = listSource(project.root);
    this.#program = await this.#options.programOf(project.runtime);
    this.#project = project;
    this.#watch = new SourceWatch(project.root, source, (file) => this.#onChange(file));
    await this.#prepare(project);
  }

  /** Undefined until it has been started. */
  get project(): Project | undefined {
    return this.#project;
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

  async close(): Promise<void> {
    this.#watch?.close();
    await this.session.close();
    if (this.#isCompiled) await (await import("esbuild")).stop();
  }

  #onChange(file: string): void {
    // Of several Functions it says which are concerned (`settings-watch.ts`).
    if (file === configName && this.#options.above !== undefined) return;
    this.#options.onChange?.(file);
    this.#changed.add(file);
    const isSettings = file === configName || file === ".env" || isManifest(file);
    const place = path.join(this.#project?.root ?? "", file);
    const isCompiled = this.#isCompiled || goesBeyondTypes({ path: file, file: place });
    if (isSettings || isCompiled || this.#preparing || !this.#packages) this.#prepareAgain();
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
      if (!(error instanceof UserError || error instanceof BuildError)) throw error;
      this.fail(error);
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
      const source = listSource(project.root);
      this.#packages = await providePackages(project, source, {
        bin: this.#programNow().bin,
        report: this.#options.report,
        isInspected: this.#options.inspect !== undefined,
      });
      await this.#compile(project, source);
      const plan = await this.#plan(project, this.#packages);
      // Something else has been saved meanwhile, and is prepared next.
      if (this.#changed.size > 0) return;
      await this.session.restart(plan);
    } catch (error) {
      if (!(error instanceof UserError || error instanceof BuildError)) throw error;
      if (this.#changed.size === 0) this.fail(error);
    }
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

  async #plan(project: Project, packages: Packages): Promise<SessionPlan> {
    const { scratch, namespace, publisher, client, inspect, report } = this.#options;
    const { root, runtime } = project;
    const { bin, command, script } = this.#programNow();
    const isPython = runtime.language === "python";
    const modules = packages.kind === "cache" ? packages.modules : undefined;
    const own = await environmentFor(project, {
      namespace,
      scratch,
      bin,
      above: this.#options.above,
      publisher,
      modules,
      inspect: inspect && inspectText(runtime.language, inspect),
      client,
      report,
    });
    const options = isPython ? undefined : (own["NODE_OPTIONS"] ?? "");
    const env = { ...own, ...this.#neighbours?.env(options) };
    const hooks = [
      ...(modules && !isPython ? [writeResolveHook(scratch, root, modules)] : []),
      ...(this.#isCompiled ? [this.#compiled.file] : []),
    ].flatMap((file) => ["--require", file]);
    // Without it debugpy misses breakpoints in the standard library, and warns of that at each start.
    const debugging = isPython && inspect ? ["-Xfrozen_modules=off"] : [];
    // The runtime reads maps from files, and this code is in none.
    if (this.#isCompiled) debugging.push("--enable-source-maps");
    // Compiled files are not the user's to find among the sources.
    const early = isPython ? { PYTHONDONTWRITEBYTECODE: "1" } : {};
    return {
      launch: {
        command,
        args: [...debugging, ...hooks, script],
        env: { ...pick(env, neededAtStart), ...early },
      },
      root,
      env: isPython ? without(env, tooLateForPython) : env,
      isInspected: inspect !== undefined,
    };
  }
}

function inspectText(
  language: keyof typeof defaultInspectPorts,
  { port = defaultInspectPorts[language], wait }: { port: number | undefined; wait: boolean },
): string {
  return `127.0.0.1:${port}${wait ? ",wait" : ""}`;
}

/** What an interpreter reads when it starts, and never again (docs/runtime-contract.md 1.5). */
const neededAtStart =
  /^(?:NODE_|UV_|SSL_|PYTHON|LD_|MALLOC_|GLIBC_TUNABLES|PATH$|HOME$|TMPDIR$|SPRY_SERVICES$)/;
const tooLateForPython = /^(?:PYTHON(?!PATH$|UNBUFFERED$)|LD_|MALLOC_|GLIBC_TUNABLES)/;

type Variables = Record<string, string>;
const pick = (env: Variables, names: RegExp): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => names.test(name)));
const without = (env: Variables, names: RegExp): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.test(name)));

/** A sentence about what a directory asks for and `spry dev` does not do; undefined if there is nothing. */
export function limitationOf({ root }: Project): string | undefined {
  if (!hasBuildScript(root)) return undefined;
  return `package.json has a build script, which a build of the image runs and spry dev does not: run its watch mode in ${path.basename(root)}`;
}

export const problemOf = (error: unknown): string => messageOf(error);
