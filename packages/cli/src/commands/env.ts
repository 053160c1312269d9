import { type Function, functions, reservedEnvNames } from "@spry/function";
import { type EnvVar, isConflict, type KubeClient } from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { followUntilRunning } from "../follow.ts";
import { Progress } from "../progress.ts";
import { printableJson } from "../printable-json.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

/** Prints a Function's own variables. A value from a Secret is shown as where it is from. */
export async function listEnv(
  name: string,
  options: GlobalOptions & { output?: string },
): Promise<void> {
  const { client, namespace } = await connect(options);
  const { spec } = await findFunction(client, namespace, name);
  if (options.output === "json") return console.log(printableJson(spec.env ?? [], 2));
  const rows = (spec.env ?? []).map((each) => [each.name, each.value ?? originOf(each)]);
  if (rows.length === 0) return console.error(`${name} has no variables of its own`);
  for (const line of tableLines(["NAME", "VALUE"], rows)) console.log(line);
}

function originOf({ valueFrom }: EnvVar): string {
  const { secretKeyRef, configMapKeyRef } = valueFrom ?? {};
  if (secretKeyRef) return `Secret ${secretKeyRef.name}, key ${secretKeyRef.key}`;
  if (configMapKeyRef) return `ConfigMap ${configMapKeyRef.name}, key ${configMapKeyRef.key}`;
  return "";
}

export interface SetEnvOptions extends GlobalOptions {
  wait: boolean;
  /** How long, in seconds; 0 is without a limit. */
  timeout: number;
}

/** Sets (`NAME=VALUE`) and removes (`NAME-`) variables in one write: the Function is rolled out once, and that is followed. */
export async function setEnv(
  name: string,
  variables: readonly string[],
  options: SetEnvOptions,
): Promise<void> {
  const progress = new Progress();
  progress.whenInterrupted("nothing was changed");
  await progress.run(() => setWith(name, variables, { ...options, progress }));
}

async function setWith(
  name: string,
  variables: readonly string[],
  options: SetEnvOptions & { progress: Progress },
): Promise<void> {
  const { progress } = options;
  const changes = variables.map(changeIn);
  const { client, namespace } = await connect(options);
  const stored = await changed(client, { namespace, name }, changes);
  if (!stored) return progress.note(`function/${name} has these variables already`);
  progress.note(`function/${name} changed: it is rolled out with the new variables`);
  if (!options.wait) return;
  await followUntilRunning(client, {
    name,
    namespace,
    generation: stored.metadata.generation ?? 0,
    stored,
    timeoutMs: options.timeout === 0 ? Infinity : options.timeout * 1000,
    progress,
  });
  const { status } = await findFunction(client, namespace, name);
  if (status?.revision !== undefined) progress.note(`version ${status.revision} serves`);
}

/** The status of a Function is written all the time, which makes a conditional write fail. */
const maxAttempts = 10;

/** The Function as it is stored then; undefined where nothing has changed. */
async function changed(
  client: KubeClient,
  target: { namespace: string; name: string },
  changes: readonly Change[],
): Promise<Function | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { spec, metadata } = await findFunction(client, target.namespace, target.name);
    // What another client writes meanwhile is not lost.
    const { resourceVersion } = metadata;
    const patch = { metadata: { resourceVersion }, spec: { env: withChanges(spec.env, changes) } };
    try {
      const stored = await client.patch(functions, target, patch, { fieldManager });
      return stored.metadata.generation === metadata.generation ? undefined : stored;
    } catch (error) {
      if (!isConflict(error) || attempt >= maxAttempts) throw error;
    }
  }
}

interface Change {
  name: string;
  /** Undefined where it is to be removed. */
  value?: string;
}

/** Each keeps its place: to set what is set already is not a change. */
function withChanges(env: readonly EnvVar[] = [], changes: readonly Change[]): EnvVar[] {
  const left = new Map(changes.map((each) => [each.name, each.value]));
  const kept = env.flatMap((each): EnvVar[] => {
    if (!left.has(each.name)) return [each];
    const value = left.get(each.name);
    left.delete(each.name);
    return value === undefined ? [] : [{ name: each.name, value }];
  });
  const added = [...left].flatMap(([name, value]) => (value === undefined ? [] : { name, value }));
  return [...kept, ...added];
}

function changeIn(text: string): Change {
  const [, name = "", value, removed] =
    /^([A-Za-z_][A-Za-z0-9_]*)(?:=([^]*)|(-))$/.exec(text) ?? [];
  if (value === undefined && removed === undefined)
    throw new UserError(`${text} is not a variable`, "write NAME=VALUE, or NAME- to remove it");
  if (reservedEnvNames.includes(name))
    throw new UserError(`${name} is reserved`, "choose another name");
  return { name, ...(value !== undefined && { value }) };
}
