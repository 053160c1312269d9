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
import { DevTerminal, listenToKeys } from "../dev/terminal.ts";
import { openBrowser } from "../open-browser.ts";
import { openProject } from "../project/project.ts";
import { UserError } from "../user-error.ts";

export interface DevOptions extends GlobalOptions {
  port?: number;
  inspect?: string | true;
  inspectBrk?: string | true;
  neighbour?: string[];
  allowHost?: string[];
}

const defaultPort = 3000;

/** Runs a directory until Ctrl-C. */
export async function dev(directory: string, options: DevOptions): Promise<void> {
  const begin = performance.now();
  const inspect = inspectOf(options);
  const allowed = new AllowedHosts(options.allowHost);
  const project = openProject(directory);
  const terminal = new DevTerminal();
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-dev-"));
  const cleanups: (() => Promise<void> | void)[] = [
    () => rmSync(scratch, { recursive: true, force: true }),
    () => void endProcessesWithHome(scratch),
  ];
  const stop = async () => {
    for (const step of cleanups.splice(0).reverse()) await step();
  };
  try {
    terminal.title(project.name, project.runtime.name);
    const report = (line: string) => terminal.line(line);
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
    const runner = await DevRunner.start({
      directory: project.root,
      scratch,
      namespace,
      publisher: collector.url,
      neighbours,
      client: cluster?.client,
      inspect,
      report,
      events: {
        onOutput: (chunk, stream) => process[stream].write(chunk),
        onReady: (ms) => {
          if (!isFirst) terminal.good(`new code answers (${ms.toFixed(0)} ms)`);
          isFirst = false;
        },
        onFailure: ({ summary }) => terminal.bad(summary),
        onCrash: (sentence) => terminal.bad(sentence),
      },
    });
    cleanups.push(() => runner.close());
    killAtExit(() => {
      runner.session.kill();
      endProcessesWithHome(scratch);
    });
    const server = createFrontServer(runner.session, (line) => terminal.request(line), allowed);
    const port = await listen(server, options.port);
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://localhost:${port}/`;
    const ms = Math.round(performance.now() - begin);
    if (isFirst) terminal.line(`waiting for code that can be loaded, at ${url}`);
    else terminal.good(`ready after ${ms} ms at ${url}`);
    isFirst = false;
    const limitation = limitationOf(runner.project);
    if (limitation) report(limitation);
    if (neighbours.names.length > 0) report(`neighbours: ${neighbours.names.join(", ")}`);
    await untilEnd(terminal, runner, url);
  } finally {
    await stop();
  }
  process.exit(0);
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

async function untilEnd(terminal: DevTerminal, runner: DevRunner, url: string): Promise<void> {
  const help = "keys: o open, e emit an event, c run a cron, l clear, r restart, q quit";
  if (process.stdin.isTTY) terminal.line(help);
  else terminal.line(`Ctrl-C ends it; SIGUSR2 sends the event of ${eventFile}`);
  let release = () => {};
  await new Promise<void>((resolve) => {
    const sendEvent = () => {
      void sendExample(terminal, runner, url);
    };
    release = listenToKeys({
      o: () => openBrowser(url, () => terminal.line(`a browser could not be started: open ${url}`)),
      e: sendEvent,
      c: () => void callAndReport(terminal, url),
      l: () => terminal.clear(),
      r: () => runner.restart(),
      h: () => terminal.line(help),
      "?": () => terminal.line(help),
      q: resolve,
    });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => resolve());
    process.on("SIGUSR2", sendEvent);
  });
  release();
}

async function callAndReport(terminal: DevTerminal, url: string): Promise<void> {
  try {
    terminal.line(`called as on a schedule: ${await callOnSchedule(url)}`);
  } catch (error) {
    terminal.bad(error instanceof Error ? error.message : String(error));
  }
}

async function sendExample(terminal: DevTerminal, runner: DevRunner, url: string): Promise<void> {
  try {
    const event = exampleEvent(runner.project.root);
    terminal.line(`emitting ${String(event["type"])} from ${String(event["source"])}`);
    await emit(url, event);
  } catch (error) {
    terminal.bad(error instanceof Error ? error.message : String(error));
  }
}
