/** A directory that runs for another command, such as its tests: without keys and pages. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { AllowedHosts } from "./allowed-hosts.ts";
import { DevRunner } from "./dev-runner.ts";
import { startCollector } from "./events.ts";
import { createFrontServer } from "./front-server.ts";
import { openNeighbours } from "./neighbours.ts";
import { Programs } from "./programs.ts";
import { type Project } from "../project/project.ts";
import { UserError } from "../user-error.ts";

export interface QuietRun {
  url: string;
  stop(): Promise<void>;
}

/** Loads the directory's code and listens on a free port. Throws a UserError when it cannot be loaded. `open`: looks at the directory. */
export async function runQuietly(
  open: () => Project,
  { namespace, report }: { namespace: string; report: (line: string) => void },
): Promise<QuietRun> {
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-test-"));
  const collector = await startCollector(() => {});
  const neighbours = await openNeighbours({
    named: [],
    namespace,
    scratch,
    client: undefined,
    gateway: undefined,
  });
  let failure: string | undefined;
  const programs = new Programs(report);
  const runner = new DevRunner({
    open,
    programOf: (runtime) => programs.of(runtime),
    scratch,
    namespace,
    publisher: collector.url,
    client: undefined,
    inspect: undefined,
    report,
    events: {
      onOutput: (chunk) => process.stderr.write(chunk),
      onReady: () => {},
      onFailure: ({ summary }, report) => {
        if (report) process.stderr.write(report.raw);
        failure = summary;
      },
      onCrash: report,
    },
  });
  await runner.start(neighbours);
  const stopAll = async (server: Server) => {
    server.closeAllConnections();
    server.close();
    await runner.close();
    neighbours.close();
    collector.close();
    programs.close();
    rmSync(scratch, { recursive: true, force: true });
  };
  process.on("exit", () => runner.session.kill());
  if (failure !== undefined) {
    await stopAll(createServer());
    throw new UserError(failure, "its tests were not run");
  }
  const server = createFrontServer(runner.session, () => {}, new AllowedHosts([]));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://localhost:${port}/`, stop: () => stopAll(server) };
}
