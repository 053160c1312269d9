import { existsSync } from "node:fs";
import path from "node:path";
import { startProgram } from "@spry/kube";
import { type GlobalOptions } from "../connection.ts";
import { kymaConfigName } from "../kyma/config-yaml.ts";
import { readConfig, readKymaConfig } from "../project/config.ts";
import { openProject, type Project } from "../project/project.ts";
import { configName } from "../project/schema.ts";
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
  const open = () => projectOf(options);
  open();
  if (options.containerName)
    console.error("--container-name has no effect: the Function runs without a container");
  if (options.detach) return detach(options);
  await dev(open, { ...options, ...(options.debug && { inspect: true }) });
}

/** The file decides, if one is named; otherwise the directory's own, and then the one of the current directory. */
function projectOf({ filename, sourceDir }: RunOptions): Project {
  if (filename !== undefined && !existsSync(filename))
    throw new UserError(
      `the file ${filename} does not exist`,
      "name a config.yaml with -f, or a directory with -d",
    );
  const directory = sourceDir ?? path.dirname(filename ?? kymaConfigName);
  const isHere = filename === undefined && sourceDir !== undefined && !hasConfig(sourceDir);
  const file = filename ?? (isHere ? kymaConfigName : undefined);
  if (file === undefined) return openProject(directory);
  return openProject(directory, (root) => {
    const found = readKymaConfig(path.resolve(file), sourceDir && root);
    if (found) return found;
    if (filename === undefined) return readConfig(root);
    throw new UserError(
      `${filename} is not a config.yaml of a Function`,
      "name one with -f, or a directory with -d",
    );
  });
}

const hasConfig = (directory: string): boolean =>
  [configName, kymaConfigName].some((name) => existsSync(path.join(directory, name)));

/** Returns once it answers, or says why it does not. */
async function detach(options: RunOptions): Promise<void> {
  const [program = ""] = process.argv.slice(1);
  const args = [program, "run", "--port", String(options.port)];
  if (options.filename !== undefined) args.push("--filename", options.filename);
  if (options.sourceDir !== undefined) args.push("--source-dir", options.sourceDir);
  if (options.debug) args.push("--debug");
  if (options.kubeconfig) args.push("--kubeconfig", options.kubeconfig);
  if (options.namespace) args.push("--namespace", options.namespace);
  const child = await startProgram(process.execPath, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk: Buffer) => (output += chunk.toString());
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const deadline = performance.now() + readyMs;
  while (!/ at http:/.test(output)) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new UserError(`the Function did not start:\n${output.trim()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  console.log(output.trim());
  console.log(`It keeps running in the background: kill ${child.pid} ends it.`);
  child.unref();
  process.exit(0);
}
