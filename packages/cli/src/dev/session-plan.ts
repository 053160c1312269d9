/** What the processes of a Function are started with: its runtime, its environment, and the hooks for packages and compiled code. */
import { type Project } from "../project/project.ts";
import { type Packages, writeResolveHook } from "./dependencies.ts";
import { type DevRunnerOptions } from "./dev-runner.ts";
import { environmentFor } from "./environment.ts";
import { writeLoadedHook } from "./loaded-files.ts";
import { type Neighbours } from "./neighbours.ts";
import { type RuntimeProgram } from "./runtime-program.ts";
import { type SessionPlan } from "./session.ts";
import { inspectText, neededAtStart, pick, tooLateForPython, without } from "./start-variables.ts";

type PlanOptions = Pick<
  DevRunnerOptions,
  "scratch" | "namespace" | "publisher" | "client" | "inspect" | "report" | "above"
> & {
  program: RuntimeProgram;
  packages: Packages;
  neighbours: Neighbours | undefined;
  /** The hook that loads compiled code, where the code is compiled. */
  compiled: string | undefined;
};

export async function sessionPlan(project: Project, options: PlanOptions): Promise<SessionPlan> {
  const { scratch, inspect, packages, compiled, neighbours } = options;
  const { root, runtime } = project;
  const { bin, command, script } = options.program;
  const isPython = runtime.language === "python";
  const modules = packages.kind === "cache" ? packages.modules : undefined;
  const own = await environmentFor(project, {
    namespace: options.namespace,
    scratch,
    bin,
    above: options.above,
    publisher: options.publisher,
    modules,
    inspect: inspect && inspectText(runtime.language, inspect),
    client: options.client,
    report: options.report,
  });
  const nodeOptions = isPython ? undefined : (own["NODE_OPTIONS"] ?? "");
  const env = { ...own, ...neighbours?.env(nodeOptions) };
  const hooks = [
    ...(isPython ? [] : [writeLoadedHook(scratch, "nodejs")]),
    ...(modules && !isPython ? [writeResolveHook(scratch, root, modules)] : []),
    ...(compiled === undefined ? [] : [compiled]),
  ].flatMap((file) => ["--require", file]);
  // Without it debugpy misses breakpoints in the standard library, and warns of that at each start.
  const debugging = isPython && inspect ? ["-Xfrozen_modules=off"] : [];
  // The runtime reads maps from files, and this code is in none.
  if (compiled !== undefined) debugging.push("--enable-source-maps");
  // Compiled files are not the user's to find among the sources.
  const early = isPython ? { PYTHONDONTWRITEBYTECODE: "1" } : {};
  const loaded = isPython ? [writeLoadedHook(scratch, "python")] : [];
  return {
    launch: {
      command,
      args: [...debugging, ...hooks, ...loaded, script],
      env: { ...pick(env, neededAtStart), ...early },
    },
    root,
    env: isPython ? without(env, tooLateForPython) : env,
    isInspected: inspect !== undefined,
  };
}
