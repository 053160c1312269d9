import { functions, reservedEnvNames } from "@spry/function";
import { type EnvVar } from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

/** Prints a Function's own variables. A value from a Secret is shown as where it is from. */
export async function listEnv(name: string, options: GlobalOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const { spec } = await findFunction(client, namespace, name);
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

/** Sets (`NAME=VALUE`) and removes (`NAME-`) variables in one write: the Function is rolled out once. */
export async function setEnv(
  name: string,
  variables: readonly string[],
  options: GlobalOptions,
): Promise<void> {
  const changes = variables.map(changeIn);
  const { client, namespace } = await connect(options);
  const { spec, metadata } = await findFunction(client, namespace, name);
  const changed = new Set(changes.map((each) => each.name));
  const env: EnvVar[] = [
    ...(spec.env ?? []).filter((each) => !changed.has(each.name)),
    ...changes.flatMap(({ name: key, value }) =>
      value === undefined ? [] : [{ name: key, value }],
    ),
  ];
  // What another client writes meanwhile is not lost.
  const { resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion }, spec: { env } };
  await client.patch(functions, { namespace, name }, patch, { fieldManager });
  console.error(`function/${name} changed: it is rolled out with the new variables`);
}

function changeIn(text: string): { name: string; value?: string } {
  const [, name = "", value, removed] =
    /^([A-Za-z_][A-Za-z0-9_]*)(?:=([^]*)|(-))$/.exec(text) ?? [];
  if (value === undefined && removed === undefined)
    throw new UserError(`${text} is not a variable`, "write NAME=VALUE, or NAME- to remove it");
  if (reservedEnvNames.includes(name))
    throw new UserError(`${name} is reserved`, "choose another name");
  return { name, ...(value !== undefined && { value }) };
}
