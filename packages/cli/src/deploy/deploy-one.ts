/** One Function of `spry deploy`: its source is sent, it is stored, and followed until it runs. */
import {
  annotations,
  defaultFunction,
  type Function,
  functions,
  validateFunction,
} from "@spry/function";
import { isConflict, isInvalid, messageOf } from "@spry/kube";
import { applyObject, fieldManager } from "../apply-object.ts";
import { confirm } from "../confirm.ts";
import { type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import { followUntilRunning } from "../follow.ts";
import { type Progress } from "../progress.ts";
import { functionOf, type Project } from "../project/project.ts";
import { retryFailedBuild } from "../retry-build.ts";
import { inNamespace } from "../shown-namespace.ts";
import { UserError } from "../user-error.ts";
import { functionNow, pushSource } from "./push-source.ts";

export interface DeployOptions extends GlobalOptions {
  name?: string;
  /** Names of those to deploy, of several. */
  function?: string[];
  wait: boolean;
  timeout: number;
  forceConflicts?: boolean;
  registry?: string;
  /** Replace a Function that came from a directory of another name. */
  yes?: boolean;
  /** Events of the progress as objects, for programs. */
  json?: boolean;
}

/** What became of it. */
export interface Deployed {
  /** It did not exist before. */
  isNew: boolean;
  /** It was followed until it ran. */
  isRunning: boolean;
  url: string | undefined;
}

export interface DeployOne {
  connection: Connection;
  options: DeployOptions;
  progress: Progress;
  /** Before each line, where several Functions are deployed. */
  prefix: string;
  /** The server has it. */
  onStored: () => void;
}

export async function deployOne(
  project: Project,
  { connection, options, progress, prefix, onStored }: DeployOne,
): Promise<Deployed> {
  for (const remark of project.remarks) progress.note(`${project.name}: ${remark}`);
  const { client } = connection;
  await checkGuessedName(project, connection, options);
  const { image, isPlain, now, module } = await pushSource(project, connection, {
    registryUrl: options.registry,
    progress,
    prefix,
  });
  const fn = functionOf(withModule(project, module), connection.namespace, { image });
  // One container builds what runs no foreign code.
  fn.metadata.annotations = {
    ...(isPlain && { [annotations.plainSource]: image.split("@")[1] ?? "" }),
    ...(project.guessed && { [annotations.directory]: project.guessed.from }),
  };
  const [problem] = validateFunction(defaultFunction(structuredClone(fn)));
  if (problem) throw new UserError(`the Function would not be valid: ${problem.message}`);
  const stored = await retryFailedBuild(client, await apply(connection, fn, options));
  onStored();
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
        prefix,
      })
    : undefined;
  const url = connection.gateway && urlOf(connection.gateway, target.name, target.namespace);
  if (running) {
    progress.report({ event: "running", function: target.name, namespace: target.namespace, url });
    progress.note(prefix + serving(target, now?.status?.revision, running.status?.revision));
  }
  return { isNew: now === undefined, isRunning: running !== undefined, url };
}

/** Different directories may give a Function the same name: the second one does not replace the first by itself. */
async function checkGuessedName(
  { name, guessed }: Project,
  connection: Connection,
  { yes }: DeployOptions,
): Promise<void> {
  if (!guessed) return;
  if (guessed.problem) throw guessed.problem;
  const now = await functionNow(connection, name);
  const before = now?.metadata.annotations?.[annotations.directory];
  if (before === undefined || before === guessed.from) return;
  await confirm(
    `Function ${name} in namespace ${connection.namespace} came from a directory ${before}: replace it with ${guessed.from}?`,
    yes,
  );
}

function withModule(project: Project, module: string | undefined): Project {
  if (module === undefined) return project;
  const { config } = project;
  return { ...project, config: { ...config, env: { HANDLER_MOD_NAME: module, ...config.env } } };
}

/** Which version answers now, and how to return to the one before. */
function serving(
  { name, namespace }: Record<"name" | "namespace", string>,
  before: number | undefined,
  after: number | undefined,
): string {
  if (after === undefined) return "";
  if (before === undefined) return `version ${after} serves`;
  if (before === after) return `version ${after} serves, as before`;
  return `version ${after} serves; \`spry rollback ${name}${inNamespace(namespace)}\` returns to version ${before}`;
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
