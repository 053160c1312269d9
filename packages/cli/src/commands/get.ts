import { type Function, functions } from "@spry/function";
import { apiVersionOf, dumpYaml, isNotFound, messageOf, parseLabelSelector } from "@spry/kube";
import { printableJson } from "../printable-json.ts";
import { connect, type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { withoutDirectory } from "../load-failure.ts";
import { refuseMissingNamespace } from "../missing-namespace.ts";
import { columnsIn, customTable } from "../custom-columns.ts";
import { renderJsonPath } from "../json-path.ts";
import { newestVersions, shownState } from "../shown-state.ts";
import { fittingTable } from "../table.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";

export interface GetOptions extends GlobalOptions {
  allNamespaces?: boolean;
  output?: string;
  watch?: boolean;
  selector?: string;
}

type Print = (found: Function[], isOne: boolean) => void | Promise<void>;

function checkSelector(text: string | undefined): void {
  try {
    if (text !== undefined) parseLabelSelector(text);
  } catch (error) {
    throw new UserError(
      `-l ${text} is not a label selector: ${messageOf(error)}`,
      "write it as app=shop, or tier!=test,app in (a, b)",
    );
  }
}

/** Prints Functions; with `watch` each of them again whenever it changes. */
export async function get(given: string | undefined, options: GetOptions): Promise<void> {
  checkSelector(options.selector);
  const connection = await connect(options);
  const print = printer(options, connection);
  const { client, namespace } = connection;
  const name = await nameMeant(connection, given);
  if (name) {
    await print([await findFunction(client, namespace, name)], true);
    if (!options.watch) return;
  }
  const which = {
    namespace: options.allNamespaces ? undefined : namespace,
    ...(options.selector !== undefined && { labelSelector: options.selector }),
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
  };
  const { items, metadata } = await client.list(functions, which);
  if (items.length === 0 && which.namespace) await refuseMissingNamespace(client, which.namespace);
  if (items.length === 0 && !options.output) {
    const where = options.allNamespaces ? "in the cluster" : `in namespace ${namespace}`;
    console.error(
      options.selector === undefined
        ? `No Functions ${where}. \`spry init\` and \`spry deploy\` create one.`
        : `No Functions ${where} have the labels ${options.selector}.`,
    );
  } else if (!name) await print(items, false);
  if (!options.watch) return;
  const { resourceVersion = "" } = metadata;
  for await (const { type, object } of client.watch(functions, { ...which, resourceVersion })) {
    if (type === "BOOKMARK") continue;
    if (type === "DELETED") console.error(`function/${object.metadata.name} deleted`);
    else await print([object], true);
  }
}

const kinds = new Set(["functions", "function", "fn"]);

/** `get functions`, as with kubectl, is all of them, unless one is called so. */
async function nameMeant(
  { client, namespace }: Connection,
  given: string | undefined,
): Promise<string | undefined> {
  if (given === undefined || !kinds.has(given)) return given;
  const isThere = await client.get(functions, { namespace, name: given }).then(
    () => true,
    (error: unknown) => {
      if (isNotFound(error)) return false;
      throw error;
    },
  );
  return isThere ? given : undefined;
}

function printer(options: GetOptions, connection: Connection): Print {
  const { output } = options;
  const [format = "", template = ""] = /^(jsonpath|custom-columns)(?:=(.*))?$/s
    .exec(output ?? "")
    ?.slice(1) ?? [output];
  switch (format) {
    case "":
    case "wide":
      return printRows(connection, format === "wide", options.allNamespaces === true);
    case "json":
      return (found, isOne) => console.log(printableJson(applicable(found, isOne), 2));
    case "yaml":
      return (found, isOne) => console.log(dumpYaml(applicable(found, isOne)).trimEnd());
    case "name":
      return (found) => found.forEach(({ metadata }) => console.log(`function/${metadata.name}`));
    case "jsonpath":
      return printTemplate(template, options.watch === true);
    case "custom-columns":
      return printColumns(template);
    default:
      throw new UserError(
        `unknown output format ${output}`,
        "use wide, name, json, yaml, jsonpath='{.status.conditions[0].message}' or custom-columns=NAME:.metadata.name" +
          (/^(?:go-template|template|jsonpath-|custom-columns-)/.test(format)
            ? ", or kubectl"
            : ""),
      );
  }
}

/** Exactly what the template says, as kubectl does; a line of its own on a terminal, and for each change. */
function printTemplate(template: string, isWatch: boolean): Print {
  // Mistakes are reported before the first object.
  renderJsonPath(template, {});
  const end = isWatch || process.stdout.isTTY ? "\n" : "";
  return (found, isOne) => {
    const text = renderJsonPath(template, isOne ? found[0] : listOf(found));
    process.stdout.write(text.endsWith("\n") ? text : text + end);
  };
}

function printColumns(template: string): Print {
  const columns = columnsIn(template);
  let isFirst = true;
  return (found) => {
    for (const line of customTable(columns, found, isFirst)) console.log(line);
    isFirst = false;
  };
}

/** What can be applied again, also later and elsewhere: a list is a `List`, and what only this very object has is left out. */
function applicable(found: Function[], isOne: boolean): unknown {
  const [only] = found;
  return isOne && only ? ownFields(only) : listOf(found.map(ownFields));
}

const listOf = (items: Function[]) => ({ apiVersion: "v1", kind: "List", items });

function ownFields(fn: Function): Function {
  const metadata = { ...fn.metadata };
  for (const name of ["managedFields", "resourceVersion", "uid"] as const) delete metadata[name];
  return { apiVersion: apiVersionOf(functions), kind: functions.kind, ...fn, metadata };
}

function printRows(connection: Connection, isWide: boolean, isOfAll: boolean): Print {
  const columns = isWide ? undefined : columnsOf(process.stdout);
  const optional = [...(isOfAll ? [] : ["NAMESPACE"]), "RUNTIME", "REPLICAS"];
  const header = ["NAMESPACE", "NAME", "STATUS", "RUNTIME", "REPLICAS", "AGE", "URL"];
  let isFirst = true;
  let widths: string[][] = [];
  return async (found, isOne) => {
    const newest = await newestVersions(connection.client, found);
    const rows = found.map((object) => [
      ...rowOf(object, connection, newest(object)),
      ...(isWide ? wideCells(object) : []),
    ]);
    const title = isWide ? [...header, "SOURCE", "IMAGE"] : header;
    // Later rows of a watch stand below the first ones.
    widths = [...widths, ...rows].slice(-50);
    const lines = fittingTable(title, [...rows, ...widths], { columns, optional }).slice(
      isFirst ? 0 : 1,
    );
    for (const line of lines.slice(0, rows.length + (isFirst ? 1 : 0))) console.log(line);
    if (isFirst && isOne && !isWide) printConditions(found[0]);
    isFirst = false;
  };
}

function wideCells({ spec, status }: Function): string[] {
  const { gitRepository, image } = spec.source;
  const source = gitRepository ? gitRepository.url : image ? "directory" : "inline";
  return [source, status?.build?.image?.split("@")[1]?.slice(7, 19) ?? ""];
}

function rowOf(object: Function, { gateway }: Connection, newest: number | undefined): string[] {
  const { name = "", namespace = "", creationTimestamp } = object.metadata;
  return [
    namespace,
    name,
    shownState(object, newest),
    object.status?.runtime ?? object.spec.runtime ?? "",
    String(object.status?.replicas ?? 0),
    age(creationTimestamp),
    gateway ? urlOf(gateway, name, namespace) : "",
  ];
}

/** Like kubectl: the largest unit that says enough. */
export function age(since: string | undefined, now = Date.now()): string {
  if (!since) return "";
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

/** A condition that repeats what another one says has only its line. */
function printConditions(object: Function | undefined): void {
  const columns = columnsOf(process.stdout);
  const said = new Set<string>();
  for (const { type, status, reason, message } of object?.status?.conditions ?? []) {
    console.log(`\n${type}: ${status} (${reason})`);
    if (message && !said.has(message))
      console.log(indented(wrapped(withoutDirectory(message), columns && columns - 2)));
    said.add(message);
  }
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, "  ");
