import { type Function, functions } from "@spry/function";
import { connect, type GlobalOptions, kubeconfigFile, urlOf } from "../connection.ts";
import { descriptorLines, diskLines, platformFields } from "../platform-lines.ts";
import { printableJson } from "../printable-json.ts";
import { printable } from "../printable.ts";
import { scrapeConfig } from "../scrape-config.ts";
import { shortReason } from "../short-reason.ts";
import { tableLines } from "../table.ts";
import { newestVersions, shownState, statusWord } from "../shown-state.ts";

export interface StatusOptions extends GlobalOptions {
  /** Print that instead. */
  scrapeConfig?: boolean;
  output?: string;
  dataDir?: string;
}

/** Prints an overview: the cluster, how many Functions in which state, and those that do not run, with the reason. */
export async function status(options: StatusOptions): Promise<void> {
  if (options.scrapeConfig) return void process.stdout.write(scrapeConfig(options.dataDir));
  const { client, gateway } = await connect(options);
  const response = await client.raw("GET", "/version").catch((error: unknown) => {
    // Without descriptors it does not answer.
    for (const line of descriptorLines(kubeconfigFile(options))) console.log(line);
    throw error;
  });
  const { gitVersion = "" } = (await response.json()) as { gitVersion?: string };
  const { items } = await client.list(functions, { namespace: options.namespace });
  const counts = new Map<string, number>();
  for (const fn of items) counts.set(statusWord(fn), (counts.get(statusWord(fn)) ?? 0) + 1);
  const failing = items.filter((fn) => problemOf(fn) !== undefined);
  const newest = await newestVersions(client, failing);
  if (options.output === "json") {
    const overview = {
      cluster: gitVersion,
      ...(gateway && { gateway: gateway.href }),
      ...platformFields(kubeconfigFile(options)),
      functions: {
        total: items.length,
        states: Object.fromEntries(counts),
        failing: failing.map((fn) => ({
          namespace: fn.metadata.namespace,
          name: fn.metadata.name,
          state: statusWord(fn),
          ...(fn.status?.revision !== undefined && { servingVersion: fn.status.revision }),
          reason: shortReason(problemOf(fn) ?? ""),
        })),
      },
    };
    return console.log(printableJson(overview, 2));
  }
  const summary = [...counts].map(([word, count]) => `${count} ${word}`).join(", ");
  console.log(`Cluster:    ${gitVersion}`);
  if (gateway) console.log(`Gateway:    ${gateway.href}`);
  for (const line of descriptorLines(kubeconfigFile(options))) console.log(line);
  for (const line of diskLines(kubeconfigFile(options))) console.log(line);
  console.log(`Functions:  ${items.length}${summary ? ` (${summary})` : ""}`);
  if (failing.length === 0) return;
  const rows = failing.map((fn) => [
    `${fn.metadata.namespace}/${fn.metadata.name}`,
    shownState(fn, newest(fn)),
    printable(shortReason(problemOf(fn) ?? "")),
  ]);
  console.log();
  for (const line of tableLines(["FUNCTION", "STATE", "REASON"], rows))
    console.log(line.slice(0, process.stdout.columns ?? 160));
  if (gateway && failing.length < items.length) {
    const [first] = items.filter((fn) => problemOf(fn) === undefined);
    const { name = "", namespace = "" } = first?.metadata ?? {};
    console.log(`\nThe others answer, such as ${urlOf(gateway, name, namespace)}`);
  }
}

const problemOf = ({ status: state }: Function): string | undefined =>
  state?.conditions?.find((each) => each.status === "False")?.message;
