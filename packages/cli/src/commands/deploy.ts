import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  annotations,
  type Function,
  functions,
  validateFunction,
  defaultFunction,
} from "@spry/function";
import { createSourceImage, type LayerFile, RegistryError } from "@spry/image";
import { isConflict, isInvalid, isNotFound, messageOf } from "@spry/kube";
import { applyObject, fieldManager } from "../apply-object.ts";
import { connect, type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import {
  compilerProblems,
  formatProblem,
  type SyntaxProblem,
  syntaxProblems,
} from "../deploy/check-syntax.ts";
import { type CompiledCode, compile, moduleNameOf, needsCompiling } from "../project/compile.ts";
import { type SourceRegistry, sourceRegistry } from "../deploy/source-registry.ts";
import { followUntilRunning } from "../follow.ts";
import { listSource, megabytes, type SourceEntry } from "../project/files.ts";
import { isPlainSource } from "../deploy/plain-source.ts";
import { repositoryAround } from "../deploy/repository-around.ts";
import { functionOf, openProject, type Project } from "../project/project.ts";
import { Progress } from "../progress.ts";
import { columnsOf } from "../terminal-width.ts";
import { explainedCommands, spryCommand } from "../shown-command.ts";
import { retryFailedBuild } from "../retry-build.ts";
import { shellWord } from "../shell-word.ts";
import { UserError } from "../user-error.ts";

export interface DeployOptions extends GlobalOptions {
  name?: string;
  wait: boolean;
  timeout: number;
  forceConflicts?: boolean;
  registry?: string;
  /** Events of the progress as objects, for programs. */
  json?: boolean;
}

/** Makes a directory a Function: its files go to the registry as one layer, and the Function names them by digest. */
export async function deploy(directory: string, options: DeployOptions): Promise<void> {
  const progress = new Progress(options.json);
  progress.whenInterrupted("nothing was deployed");
  await progress.run(() => deployWith(directory, options, progress));
}

async function deployWith(
  directory: string,
  options: DeployOptions,
  progress: Progress,
): Promise<void> {
  const found = openProject(directory);
  const project = { ...found, name: options.name ?? found.name };
  for (const remark of project.remarks) progress.note(`${project.name}: ${remark}`);
  const namespace = options.namespace ?? project.config.namespace;
  const connection = await connect({ ...options, ...(namespace !== undefined && { namespace }) });
  const { client } = connection;
  const { image, isPlain, now, module } = await pushSource(project, connection, {
    registryUrl: options.registry,
    progress,
  });
  const fn = functionOf(withModule(project, module), connection.namespace, { image });
  // One container builds what runs no foreign code.
  if (isPlain) fn.metadata.annotations = { [annotations.plainSource]: image.split("@")[1] ?? "" };
  const [problem] = validateFunction(defaultFunction(structuredClone(fn)));
  if (problem) throw new UserError(`the Function would not be valid: ${problem.message}`);
  const stored = await retryFailedBuild(client, await apply(connection, fn, options));
  progress.report({
    event: "applied",
    object: `function/${project.name}`,
    namespace: connection.namespace,
  });
  const { generation = 0 } = stored.metadata;
  const target = { namespace: connection.namespace, name: project.name };
  const running = options.wait
    ? await followUntilRunning(client, {
        ...target,
        generation,
        stored,
        timeoutMs: options.timeout * 1000,
        progress,
      })
    : undefined;
  const url = connection.gateway && urlOf(connection.gateway, target.name, target.namespace);
  if (running) {
    progress.report({ event: "running", function: target.name, namespace: target.namespace, url });
    progress.note(serving(target.name, now?.status?.revision, running.status?.revision));
  }
  if (url && !progress.isJson) console.log(url);
  if (running && !now && process.stderr.isTTY) progress.note(nextSteps(directory, target.name));
}

/** The source as the cluster names it; `isPlain`: without packages and build script. */
interface Sent {
  image: string;
  isPlain: boolean;
  /** The Function before; undefined for a new one. */
  now: Function | undefined;
  /** What compiled code is called, where the runtime does not find it by itself. */
  module: string | undefined;
}

/** Checks the code, and sends what the registry lacks. */
async function pushSource(
  project: Project,
  connection: Connection,
  { registryUrl, progress }: { registryUrl: string | undefined; progress: Progress },
): Promise<Sent> {
  // On their way while the files are read.
  const reaching = sourceRegistry(connection, project.name, registryUrl);
  const before = functionNow(connection, project.name);
  for (const each of [reaching, before]) each.catch(() => {});
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-deploy-"));
  const removeScratch = () => rmSync(scratch, { recursive: true, force: true });
  process.once("exit", removeScratch);
  try {
    const { files, keptBack } = listSource(project.root);
    progress.waitFor(project.name, `sending ${files.length} files`);
    const report = (sentBytes: number, text: string) =>
      progress.report(
        { event: "source", function: project.name, files: files.length, sentBytes },
        `${project.name}: ${files.length} ${files.length === 1 ? "file" : "files"}, ${text}`,
      );
    const layerFiles: LayerFile[] = files.map(({ path: name, file, size, isExecutable }) => ({
      path: name,
      file,
      size,
      mode: isExecutable ? 0o755 : 0o644,
    }));
    const compiled = needsCompiling(project, files)
      ? await compiledCode(project, files)
      : undefined;
    if (compiled)
      layerFiles.push({ path: compiled.path, content: Buffer.from(compiled.text), mode: 0o644 });
    const module = compiled && moduleNameOf(compiled);
    const around = await repositoryAround(project, path.join(scratch, "repository"));
    // It starts a process of its own, and is done by the time that the server has answered.
    const checking = compiled ? Promise.resolve([]) : syntaxProblems(project, files);
    checking.catch(() => {});
    const [source, reached, now] = await Promise.all([
      createSourceImage([...layerFiles, ...around], path.join(scratch, "source.tar")),
      reaching,
      before,
    ]);
    // What is sent in vain does no harm, and goes with the next cleaning.
    const pushing = send(reached, () => source.push(reached.client, reached.push));
    pushing.catch(() => {});
    const image = `${reached.pull}@${source.digest}`;
    const isPlain = around.length === 0 && isPlainSource(project, files);
    if (now?.spec.source.image === image) {
      // It may have been removed from the registry since.
      const { sentBytes } = await pushing;
      report(sentBytes, "unchanged");
      return { image, isPlain, now, module };
    }
    const problems = await checking;
    if (problems.length > 0) {
      await pushing.catch(() => {});
      throw refusalOf(problems);
    }
    if (keptBack.length > 0) {
      const more = keptBack.length > 5 ? ` and ${keptBack.length - 5} more` : "";
      progress.note(
        `not sent, because they may hold secrets: ${keptBack.slice(0, 5).join(", ")}${more}`,
      );
    }
    const { sentBytes } = await pushing;
    report(sentBytes, `${megabytes(sentBytes)} sent`);
    return { image, isPlain, now, module };
  } finally {
    void reaching.then(
      (registry) => registry.close(),
      () => {},
    );
    progress.done(project.name);
    process.off("exit", removeScratch);
    removeScratch();
  }
}

function withModule(project: Project, module: string | undefined): Project {
  if (module === undefined) return project;
  const { config } = project;
  return { ...project, config: { ...config, env: { HANDLER_MOD_NAME: module, ...config.env } } };
}

/** Under the name that the runtime looks for first. Nothing gets into it that would not be sent: what is left out may be secret. */
async function compiledCode(
  project: Project,
  files: readonly SourceEntry[],
): Promise<CompiledCode> {
  const sent = new Set(files.map((file) => file.path));
  try {
    const code = await compile(project);
    const other = code.inputs.find((input) => !sent.has(input));
    if (other === undefined) return code;
    throw new UserError(
      `${project.handler} needs ${other}, which is not among the files that are sent`,
      "move it into the directory, or take it out of .spryignore or .gitignore; nothing was deployed",
    );
  } catch (error) {
    const problems = compilerProblems(error);
    throw problems.length > 0 ? refusalOf(problems) : error;
  } finally {
    await (await import("esbuild")).stop();
  }
}

function refusalOf(problems: readonly SyntaxProblem[]): UserError {
  return new UserError(
    problems.map((each) => formatProblem(each, columnsOf(process.stderr))).join("\n"),
    "nothing was deployed; what ran before still runs",
  );
}

/** Which version answers now, and how to return to the one before. */
function serving(name: string, before: number | undefined, after: number | undefined): string {
  if (after === undefined) return "";
  if (before === undefined) return `version ${after} serves`;
  if (before === after) return `version ${after} serves, as before`;
  return `version ${after} serves; \`spry rollback ${name}\` returns to version ${before}`;
}

function nextSteps(directory: string, name: string): string {
  const place = directory === "." ? "" : ` ${shellWord(directory)}`;
  const rows: [string, string][] = [
    [`logs -f ${name}`, "what it writes"],
    [`deploy${place}`, "after each change"],
    [`describe ${name}`, "its state and its versions"],
  ];
  return `\nNext:\n\n${explainedCommands(rows.map(([command, comment]) => [spryCommand(command), comment]))}`;
}

async function functionNow(
  { client, namespace }: Connection,
  name: string,
): Promise<Function | undefined> {
  try {
    return await client.get(functions, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function send<T>(registry: SourceRegistry, push: () => Promise<T>): Promise<T> {
  try {
    return await push();
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    const { address } = registry;
    const problem = registry.problem();
    if (problem) throw problem;
    const wayOut =
      error.status === 0
        ? "if this machine reaches it at another address, name that with --registry"
        : "check that its login in the namespace's Secret is valid";
    throw new UserError(
      `the source cannot be sent to the registry ${address}: ${messageOf(error)}`,
      wayOut,
    );
  }
}

async function apply(
  connection: Connection,
  fn: Function,
  { forceConflicts = false }: DeployOptions,
): Promise<Function> {
  const { client, namespace } = connection;
  const { name = "" } = fn.metadata;
  const wayOut = "take it over with --force-conflicts, or choose another name with --name";
  try {
    return await applyObject(client, functions, fn, { forceConflicts });
  } catch (error) {
    if (isConflict(error))
      throw new UserError(
        `function/${name} is managed by another tool: ${messageOf(error)}`,
        wayOut,
      );
    const before = isInvalid(error) ? await functionNow(connection, name) : undefined;
    const { inline, gitRepository } = before?.spec.source ?? {};
    if (!inline && !gitRepository) throw error;
    // A source that another tool manages stays where it is until it is removed by name.
    const kind = inline ? "inline code" : "a Git repository";
    if (!forceConflicts)
      throw new UserError(
        `function/${name} has ${kind} as its source, which another tool manages`,
        wayOut,
      );
    const source = { ...fn.spec.source, inline: null, gitRepository: null };
    await client.patch(functions, { namespace, name }, { spec: { source } }, { fieldManager });
    return applyObject(client, functions, fn, { forceConflicts });
  }
}
