import { type KubeClient } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { AllowedHosts } from "../dev/allowed-hosts.ts";
import { DevFunction } from "../dev/dev-function.ts";
import { inspectPorts } from "../dev/inspect-ports.ts";
import { Chosen, untilQuit } from "../dev/keys.ts";
import { DevEvents, type DevOutput } from "../dev/output.ts";
import { portsFrom } from "../dev/ports.ts";
import { Programs } from "../dev/programs.ts";
import { startAll } from "../dev/start-all.ts";
import { watchSettings } from "../dev/settings-watch.ts";
import { DevTerminal } from "../dev/terminal.ts";
import { type EndSignal, exitCodeOf, untilInterrupted } from "../interruption.ts";
import { languageOf, projectOf, type Target, targetOf, targetsOf } from "../project/targets.ts";
import { type Project } from "../project/project.ts";
import { UserError } from "../user-error.ts";

export interface DevOptions extends GlobalOptions {
  /** Names of those to run, of several. */
  function?: string[];
  port?: number;
  inspect?: string | true;
  inspectBrk?: string | true;
  neighbour?: string[];
  allowHost?: string[];
  /** Events as objects, for programs. */
  json?: boolean;
}

/** How long a directory, which needs no cluster, waits for one. */
const loginMs = 2000;

/** A directory whose configuration is elsewhere. */
export type OpenDirectory = () => Project;

/** Runs directories until Ctrl-C. */
export async function dev(
  directories: readonly string[] | OpenDirectory,
  options: DevOptions,
): Promise<void> {
  const find = () => {
    if (typeof directories === "function") return [targetOf("", ".", directories)];
    return targetsOf(directories.length === 0 ? ["."] : directories, options.function);
  };
  if (!options.json) return end(await runUntilEnd(find, options, new DevTerminal()));
  const events = new DevEvents();
  try {
    end(await runUntilEnd(find, options, events));
  } catch (error) {
    events.ended(error);
    process.exit(1);
  }
}

function end(signal: EndSignal | undefined): never {
  process.exit(signal ? exitCodeOf(signal) : 0);
}

/** Returns the signal that has ended it, if it was one. */
async function runUntilEnd(
  find: () => Target[],
  options: DevOptions,
  output: DevOutput,
): Promise<EndSignal | undefined> {
  const begin = performance.now();
  const allowed = new AllowedHosts(options.allowHost);
  const inspect = inspectOf(options);
  const targets = find();
  // Where one can run, the others say what they lack.
  const [first] = targets;
  if (first && targets.every(({ found }) => found instanceof UserError)) projectOf(first);
  const isAlone = targets.length === 1;
  const interrupted = untilInterrupted();
  const all: DevFunction[] = [];
  const cleanups: (() => Promise<unknown> | void)[] = [
    () => Promise.all(all.map((each) => each.close())),
  ];
  try {
    killAtExit(() => all.forEach((each) => each.kill()));
    const outputs = outputsOf(targets, output);
    targets.forEach(({ name, found }, index) => {
      const runtime = found instanceof UserError ? "" : found.runtime.name;
      outputs[index]?.begin(name, runtime);
    });
    const programs = new Programs((line) => output.note(line));
    await openAll(all, { targets, outputs, options, allowed, inspect, programs });
    const starting = startAll(all, { targets, named: options.neighbour });
    starting.catch(() => {});
    const neighbours = await Promise.race([starting, interrupted]);
    // What has been started by then ends with this process (`process-guard.ts`).
    if (!Array.isArray(neighbours)) return neighbours;
    cleanups.push(...watchAll(all, output));
    const chosen = new Chosen(all, output);
    // Before the message that it is ready: without a listener this signal would end the process.
    process.on("SIGUSR2", () => void chosen.function?.sendExample());
    const ms = Math.round(performance.now() - begin);
    all.forEach((each, index) => outputs[index]?.ready({ ...each.listed, ms }));
    if (!isAlone)
      output.allReady(
        all.map(({ listed }) => listed),
        ms,
      );
    if (neighbours.length > 0) output.note(`neighbours: ${neighbours.join(", ")}`);
    const quit = untilQuit(all, { chosen, output, hasKeys: !options.json });
    return await Promise.race([quit, interrupted]);
  } finally {
    for (const step of cleanups.splice(0).reverse()) await step();
    output.stopped();
  }
}

/** Adds each to `all` as soon as it has its port. */
async function openAll(
  all: DevFunction[],
  {
    targets,
    outputs,
    options,
    allowed,
    programs,
    ...common
  }: {
    targets: readonly Target[];
    outputs: readonly DevOutput[];
    options: DevOptions;
    allowed: AllowedHosts;
    inspect: Inspect;
    programs: Programs;
  },
): Promise<void> {
  const report = (line: string) => outputs[0]?.note(line);
  const cluster = await withoutWaiting(clusterOf(options), report);
  const listen = portsFrom(options.port, targets.length === 1);
  const inspected = inspectOfEach(targets, common.inspect);
  for (const [index, target] of targets.entries()) {
    const { found } = target;
    const own = found instanceof UserError ? undefined : found.config.namespace;
    const namespace = options.namespace ?? own ?? cluster?.namespace ?? "default";
    const output = outputs[index] ?? new DevTerminal();
    const inspect = inspected[index];
    all.push(
      await DevFunction.open(
        { target, namespace, output, allowed, cluster, inspect, programs },
        listen,
      ),
    );
  }
}

/** Of one Function the output is the command's. */
function outputsOf(targets: readonly Target[], output: DevOutput): DevOutput[] {
  if (targets.length === 1) return [output];
  const names = targets.map(({ name }) => name);
  return names.map((name) => output.of(name, names));
}

/** A file for each `spry.yaml` with several Functions. */
function watchAll(all: readonly DevFunction[], output: DevOutput): (() => void)[] {
  const members = all.filter(({ target }) => target.isMember);
  const bases = [...new Set(members.map(({ target }) => target.base))];
  return bases.map((base) =>
    watchSettings(
      base,
      members.filter(({ target }) => target.base === base),
      output,
    ),
  );
}

function inspectOf({ inspect, inspectBrk }: DevOptions) {
  const given = inspectBrk ?? inspect;
  if (given === undefined) return undefined;
  const port = given === true ? undefined : Number(given);
  if (port !== undefined && !(Number.isInteger(port) && port >= 10 && port <= 65535))
    throw new UserError(`${given} is not a valid port`, "write --inspect, or --inspect=9229");
  return { port, wait: inspectBrk !== undefined };
}

/** A platform, if one is reachable; a directory runs without one, too. */
async function clusterOf(options: GlobalOptions) {
  try {
    const { client, namespace, gateway } = await connect(options);
    if (!(await isReachable(client))) return undefined;
    return { client, namespace, gateway };
  } catch (error) {
    if (!(error instanceof UserError) || options.kubeconfig) throw error;
    return undefined;
  }
}

/** A login of the kubeconfig may take as long as it likes: the directory runs without the cluster then. */
async function withoutWaiting<T>(
  finding: Promise<T>,
  report: (line: string) => void,
): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      report(
        `the cluster of your kubeconfig has not answered within ${loginMs / 1000} s: its Secrets, ConfigMaps and Functions are not used`,
      );
      resolve(undefined);
    }, loginMs);
  });
  finding.catch(() => {});
  return Promise.race([finding, late]).finally(() => clearTimeout(timer));
}

async function isReachable(client: KubeClient): Promise<boolean> {
  try {
    await client.raw("GET", "/version", { signal: AbortSignal.timeout(500) });
    return true;
  } catch {
    return false;
  }
}

type Inspect = ReturnType<typeof inspectOf>;

/** What each is started with. */
function inspectOfEach(targets: readonly Target[], inspect: Inspect): Inspect[] {
  if (!inspect || targets.length === 1) return targets.map(() => inspect);
  const ports = inspectPorts(targets.map(languageOf), inspect.port);
  return ports.map((port) => ({ ...inspect, port }));
}

/** Whatever ends this process, the Functions' end with it. */
function killAtExit(kill: () => void): void {
  process.on("exit", kill);
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.on(event, (error) => {
      console.error("spry dev ended because of an internal error:", error);
      process.exit(70);
    });
}
