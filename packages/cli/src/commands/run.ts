import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { type GlobalOptions } from "../connection.ts";
import { UserError } from "../user-error.ts";
import { dev } from "./dev.ts";

export interface RunOptions extends GlobalOptions {
  filename?: string;
  sourceDir?: string;
  containerName?: string;
  port: number;
  detach?: boolean;
  debug?: boolean;
  hotDeploy?: boolean;
}

const readyMs = 120_000;

/**
 * The original's `run function`: the directory of a config.yaml on port 8080. It runs without a container, so the option for
 * its name has no effect, and changed code is always reloaded.
 */
export async function run(options: RunOptions): Promise<void> {
  if (options.filename !== undefined && !existsSync(options.filename))
    throw new UserError(
      `the file ${options.filename} does not exist`,
      "name a config.yaml with -f, or a directory with -d",
    );
  const directory = options.sourceDir ?? path.dirname(options.filename ?? "config.yaml");
  if (options.containerName)
    console.error("--container-name has no effect: the Function runs without a container");
  if (options.detach) return detach(directory, options);
  await dev(directory, { ...options, ...(options.debug && { inspect: true }) });
}

/** Returns once it answers, or says why it does not. */
async function detach(directory: string, options: RunOptions): Promise<void> {
  const [program = ""] = process.argv.slice(1);
  const args = [program, "dev", directory, "--port", String(options.port)];
  if (options.debug) args.push("--inspect");
  if (options.kubeconfig) args.push("--kubeconfig", options.kubeconfig);
  if (options.namespace) args.push("--namespace", options.namespace);
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk: Buffer) => (output += chunk.toString());
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const deadline = Date.now() + readyMs;
  while (!/ at http:/.test(output)) {
    if (child.exitCode !== null || Date.now() > deadline)
      throw new UserError(`the Function did not start:\n${output.trim()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  console.log(output.trim());
  console.log(`It goes on in the background: kill ${child.pid} ends it.`);
  child.unref();
  process.exit(0);
}
