import { dump } from "js-yaml";
import { type Function, functions } from "@spry/function";
import { connect, type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

export interface GetOptions extends GlobalOptions {
  allNamespaces?: boolean;
  output?: string;
}

export async function get(name: string | undefined, options: GetOptions): Promise<void> {
  const connection = await connect(options);
  const found = name
    ? [await findFunction(connection.client, connection.namespace, name)]
    : (
        await connection.client.list(functions, {
          namespace: options.allNamespaces ? undefined : connection.namespace,
        })
      ).items;
  if (options.output === "json")
    return console.log(JSON.stringify(name ? found[0] : found, null, 2));
  if (options.output === "yaml")
    return console.log(dump(name ? found[0] : found, { noRefs: true }).trimEnd());
  if (options.output)
    throw new UserError(`unknown output format ${options.output}`, "use json or yaml");
  if (found.length === 0) {
    const where = options.allNamespaces ? "in the cluster" : `in namespace ${connection.namespace}`;
    return console.error(`No Functions ${where}. \`spry apply -f FILE\` creates one.`);
  }
  const header = ["NAMESPACE", "NAME", "STATUS", "RUNTIME", "REPLICAS", "AGE", "URL"];
  const rows = found.map((object) => rowOf(object, connection));
  for (const line of tableLines(header, rows)) console.log(line);
  if (name) printConditions(found[0]);
}

function rowOf(object: Function, { gateway }: Connection): string[] {
  const { name = "", namespace = "", creationTimestamp } = object.metadata;
  return [
    namespace,
    name,
    statusWord(object),
    object.status?.runtime ?? object.spec.runtime ?? "",
    String(object.status?.replicas ?? 0),
    age(creationTimestamp),
    gateway ? urlOf(gateway, name, namespace) : "",
  ];
}

/** One word for all conditions: what fails first, else what is waited for, else Running. */
export function statusWord(object: Function): string {
  const conditions = object.status?.conditions ?? [];
  const statusOf = (type: string) =>
    conditions.find((condition) => condition.type === type)?.status;
  if (conditions.length === 0) return "Initializing";
  if (statusOf("ConfigurationReady") === "False") return "Invalid";
  if (statusOf("BuildReady") === "False") return "BuildFailed";
  if (statusOf("Running") === "False") return "Failed";
  if (statusOf("BuildReady") !== "True") return "Building";
  return statusOf("Running") === "True" ? "Running" : "Deploying";
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

function printConditions(object: Function | undefined): void {
  for (const { type, status, reason, message } of object?.status?.conditions ?? []) {
    console.log(`\n${type}: ${status} (${reason})\n  ${message.replaceAll("\n", "\n  ")}`);
  }
}
