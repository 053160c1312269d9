import { mkdtempSync, rmSync } from "node:fs";
import { type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { type KubeClient } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { AllowedHosts } from "../dev/allowed-hosts.ts";
import { DevRunner, limitationOf } from "../dev/dev-runner.ts";
import { callOnSchedule, emit, eventFile, exampleEvent, startCollector } from "../dev/events.ts";
import { createFrontServer } from "../dev/front-server.ts";
import { endProcessesWithHome } from "../dev/left-over.ts";
import { openNeighbours } from "../dev/neighbours.ts";
import { DevEvents, type DevOutput } from "../dev/output.ts";
import { DevTerminal, listenToKeys } from "../dev/terminal.ts";
import { type EndSignal, exitCodeOf, untilInterrupted } from "../interruption.ts";
import { openBrowser } from "../open-browser.ts";
import { openProject, type Project } from "../project/project.ts";
import { UserError } from "../user-error.ts";

export interface DevOptions extends GlobalOptions {
  port?: number;
  inspect?: string | true;
  inspectBrk?: string | true;
  neighbour?: string[];
  allowHost?: string[];
  /** Events as objects, for programs. */
  json?: boolean;
}

/** A directory, or one whose configuration is elsewhere. */
export type OpenDirectory = () => Project;

const defaultPort = 3000;

/** Runs a directory until Ctrl-C. */
export async function dev(directory: string | OpenDirectory, options: DevOptions): Promise<void> {
  const open = typeof directory === "string" ? () => openProject(directory) : directory;
  if (!options.json) return end(await runUntilEnd(open, options, new DevTerminal()));
  const events = new DevEvents();
  try {
    end(await runUntilEnd(open, options, events));
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
  open: OpenDirectory,
  options: DevOptions,
  output: DevOutput,
): Promise<EndSignal | undefined> {
  const begin = performance.now();
  const inspect = inspectOf(options);
  const allowed = new AllowedHosts(options.allowHost);
  const project = open();
  const interrupted = untilInterrupted();
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-dev-"));
  const cleanups: (() => Promise<void> | void)[] = [
    () => rmSync(scratch, { recursive: true, force: true }),
    () => void endProcessesWithHome(scratch),
  ];
  const stop = async () => {
    for (const step of cleanups.splice(0).reverse()) await step();
    output.stopped();
  };
  try {
    output.begin(project.name, project.runtime.name);
    const report = (line: string) => output.note(line);
    const cluster = await clusterOf(options);
    const namespace =
      options.namespace ?? project.config.namespace ?? cluster?.namespace ?? "default";
    const collector = await startCollector(report);
    cleanups.push(() => collector.close());
    const neighbours = await openNeighbours({
      named: options.neighbour ?? [],
      namespace,
      scratch,
      client: cluster?.client,
      gateway: cluster?.gateway,
    });
    cleanups.push(() => neighbours.close());
    /** Until the code has been loaded once. */
    let isFirst = true;
    const starting = DevRunner.start({
      open,
      scratch,
      namespace,
      publisher: collector.url,
      neighbours,
      client: cluster?.client,
      inspect,
      report,
      onChange: (file) => output.changed(file),
      events: {
        onOutput: (chunk, stream) => output.output(chunk, stream),
        onReady: (ms) => {
          if (!isFirst) output.reloaded(ms);
          isFirst = false;
        },
        onFailure: (failure, report) => output.failed(failure, report),
        onCrash: (sentence) => output.crashed(sentence),
      },
    });
    const runner = await Promise.race([starting, interrupted]);
    // What has been started by then ends with this process (`process-guard.ts`).
    if (!(runner instanceof DevRunner)) return runner;
    cleanups.push(() => runner.close());
    killAtExit(() => {
      runner.session.kill();
      endProcessesWithHome(scratch);
    });
    const server = createFrontServer(runner.session, (line) => output.request(line), allowed);
    const port = await listen(server, options.port);
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://localhost:${port}/`;
    const sendEvent = () => void sendExample(output, runner, url);
    // Before the message that it is ready: without a listener this signal would end the process.
    process.on("SIGUSR2", sendEvent);
    output.ready({ url, ms: Math.round(performance.now() - begin), isLoaded: !isFirst });
    isFirst = false;
    const limitation = limitationOf(runner.project);
    if (limitation) report(limitation);
    if (neighbours.names.length > 0) report(`neighbours: ${neighbours.names.join(", ")}`);
    const quit = untilQuit(output, runner, { url, sendEvent, hasKeys: !options.json });
    return await Promise.race([quit, interrupted]);
  } finally {
    await stop();
  }
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

async function isReachable(client: KubeClient): Promise<boolean> {
  try {
    await client.raw("GET", "/version", { signal: AbortSignal.timeout(500) });
    return true;
  } catch {
    return false;
  }
}

async function listen(server: Server, wanted: number | undefined): Promise<number> {
  const attempt = (port: number) =>
    new Promise<number>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        server.off("error", reject);
        resolve((server.address() as { port: number }).port);
      });
    });
  try {
    return await attempt(wanted ?? defaultPort);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    if (wanted === undefined) return attempt(0);
    throw new UserError(
      `port ${wanted} is in use by another program`,
      "choose another one with --port (0: any free one)",
    );
  }
}

/** Whatever ends this process, the Function's end with it. */
function killAtExit(kill: () => void): void {
  process.on("exit", kill);
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.on(event, (error) => {
      console.error("spry dev ended because of an internal error:", error);
      process.exit(70);
    });
}

/** Until a key ends it; the keys are listened to as long as this process runs. */
async function untilQuit(
  output: DevOutput,
  runner: DevRunner,
  { url, sendEvent, hasKeys }: { url: string; sendEvent: () => void; hasKeys: boolean },
): Promise<EndSignal | undefined> {
  const help = "keys: o open, e emit an event, c run a cron, l clear, r restart, q quit";
  if (hasKeys && process.stdin.isTTY) output.note(help);
  else if (hasKeys) output.note(`Ctrl-C ends it; SIGUSR2 sends the event of ${eventFile}`);
  return new Promise((resolve) => {
    if (!hasKeys) return;
    const release = listenToKeys({
      o: () => openBrowser(url, () => output.note(`a browser could not be started: open ${url}`)),
      e: sendEvent,
      c: () => void callAndReport(output, runner, url),
      l: () => output.clear(),
      r: () => runner.restart(),
      h: () => output.note(help),
      "?": () => output.note(help),
      q: () => resolve(undefined),
      interrupt: () => resolve("SIGINT"),
    });
    process.on("exit", release);
  });
}

async function callAndReport(output: DevOutput, runner: DevRunner, url: string): Promise<void> {
  const [schedule] = runner.project.config.schedules ?? [];
  const name = schedule ? `schedule ${schedule.name}` : "a schedule";
  try {
    output.note(`called as by ${name}: HTTP ${await callOnSchedule(url, schedule)}`);
  } catch (error) {
    output.problem(error instanceof Error ? error.message : String(error));
  }
}

async function sendExample(output: DevOutput, runner: DevRunner, url: string): Promise<void> {
  try {
    const event = exampleEvent(runner.project.root);
    output.note(`emitting ${String(event["type"])} from ${String(event["source"])}`);
    await emit(url, event);
  } catch (error) {
    output.problem(error instanceof Error ? error.message : String(error));
  }
}
