import {
  type Function,
  isServedOnDemand,
  knativeLabels,
  labels,
  resolveResources,
  revisionsOf,
  functionRevisions,
} from "@spry/function";
import { type Event, type KubeClient, type Pod, resources } from "@spry/kube";
import { connect, type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { failureOf } from "../follow.ts";
import { withShownCommands } from "../shown-command.ts";
import { tableLines } from "../table.ts";
import { columnsOf, shortened, withShortDigests, wrapped } from "../terminal-width.ts";
import { age, statusWord } from "./get.ts";

const shownEvents = 10;
const shownVersions = 5;
const defaultProfile = "L";
/** Of an Event: the rest is in its object. */
const maxMessage = 160;
/** Prints a Function's state, why it is so and what to do, its Pods, versions and Events. */
export async function describe(name: string, options: GlobalOptions): Promise<void> {
  const connection = await connect(options);
  const { client, namespace } = connection;
  const fn = await findFunction(client, namespace, name);
  const labelSelector = `${labels.functionName}=${name}`;
  const [pods, versions, events] = await Promise.all([
    listed<Pod>(client.list(resources.pods, { namespace, labelSelector })),
    listed(client.list(functionRevisions, { namespace, labelSelector })),
    eventsOf(client, fn),
  ]);
  const newest = revisionsOf(fn, versions)[0]?.revision;
  const lines = [
    ...summary(fn, connection, newest),
    ...problem(fn, newest),
    ...section("Instances", podLines(pods)),
    ...section(
      "Versions",
      revisionsOf(fn, versions)
        .slice(0, shownVersions)
        .map(({ revision, data }) => [
          String(revision),
          `${age(data.time)} ago`,
          data.author ?? "",
        ]),
    ),
    ...section("Events", eventLines(events)),
  ];
  console.log(lines.join("\n"));
}

/** What a user may not list is left out. */
async function listed<T>(list: Promise<{ items: T[] }>): Promise<T[]> {
  try {
    return (await list).items;
  } catch {
    return [];
  }
}

async function eventsOf(client: KubeClient, { metadata }: Function): Promise<Event[]> {
  const { namespace, name = "", uid } = metadata;
  const fieldSelector = `involvedObject.kind=Function,involvedObject.name=${name}`;
  const found = await listed<Event>(client.list(resources.events, { namespace, fieldSelector }));
  // Those of a Function that had this name before and was deleted are not about this one.
  return found.filter(({ involvedObject: { uid: about } }) => !about || about === uid);
}

function summary(fn: Function, { gateway }: Connection, newest: number | undefined): string[] {
  const { metadata, spec, status } = fn;
  const word = statusWord(fn);
  const serves =
    status?.revision !== undefined && !(word === "Failed" && status.revision === newest);
  const { name = "", namespace = "", creationTimestamp } = metadata;
  const { inline, gitRepository, image } = spec.source;
  const source = gitRepository
    ? `Git ${gitRepository.url} ${gitRepository.reference}${status?.commit ? ` (${status.commit.slice(0, 12)})` : ""}`
    : image
      ? `directory (${image.split("@")[1]?.slice(0, 19)})`
      : `inline, ${Buffer.byteLength(inline?.source ?? "")} bytes`;
  const { profile, resources: amounts } = resolveResources(
    "function",
    spec.resourceConfiguration?.function,
    status?.functionResourceProfile ?? defaultProfile,
  );
  const { cpu = "none", memory = "none" } = amounts.limits ?? {};
  const scale = spec.scaleConfig;
  const rows: [string, string][] = [
    ["Name", `${name} (namespace ${namespace})`],
    ["Status", `${word}${serves ? `, version ${status?.revision} serves` : ""}`],
    [
      "URL",
      gateway ? urlOf(gateway, name, namespace) : `http://${name}.${namespace}.svc.cluster.local`,
    ],
    ["Runtime", status?.runtime ?? spec.runtime ?? ""],
    ["Source", source],
    ["Image", imageText(status?.build?.image)],
    ["Limits", `${cpu} CPU, ${memory} memory (${profile})`],
    [
      "Instances",
      `${status?.replicas ?? 0}${scale ? ` (${scale.minReplicas} to ${scale.maxReplicas})` : ""}` +
        (isServedOnDemand(spec) ? ", on demand" : ""),
    ],
    ["Variables", (spec.env ?? []).map((each) => each.name).join(", ") || "none"],
    ["Age", age(creationTimestamp)],
  ];
  return rows.map(([title, text]) => `${`${title}:`.padEnd(11)} ${text}`);
}

/** On a terminal, the digest's first digits: those that `history` and Events show. */
function imageText(image: string | undefined): string {
  if (image === undefined) return "not built yet";
  return columnsOf(process.stdout) === undefined ? image : withShortDigests(image);
}

/** The first condition that is False, in words. */
function problem(fn: Function, version: number | undefined): string[] {
  const conditions = fn.status?.conditions ?? [];
  const failed = ["ConfigurationReady", "BuildReady", "Running"]
    .map((type) => conditions.find((each) => each.type === type))
    .find((each) => each?.status === "False");
  if (failed) {
    const { message, wayOut = "" } = failureOf(fn, failed, version);
    const columns = columnsOf(process.stdout);
    const lines = wrapped(withShownCommands(`${message}\n${wayOut}`), columns && columns - 2).split(
      "\n",
    );
    return ["", "Problem:", ...lines.map((line) => `  ${line}`.trimEnd())];
  }
  const waiting = conditions.find(({ status }) => status === "Unknown");
  return waiting ? ["", `Waiting:    ${waiting.message.split("\n")[0]}`] : [];
}

function section(title: string, rows: string[][]): string[] {
  if (rows.length === 0) return [];
  const [, ...lines] = tableLines(rows[0]?.map(() => "") ?? [], rows);
  const columns = columnsOf(process.stdout);
  return ["", `${title}:`, ...lines.map((line) => shortened(`  ${line}`, columns))];
}

/** Of the Function itself, served either way; the others are builds. */
const isInstance = (found: Record<string, string>): boolean =>
  found[labels.resource] === "deployment" || knativeLabels.revision in found;

function podLines(pods: readonly Pod[]): string[][] {
  return pods
    .filter(({ metadata }) => isInstance(metadata.labels ?? {}))
    .map(({ metadata, status }) => {
      const [container] = status?.containerStatuses ?? [];
      const restarts = container?.restartCount ?? 0;
      const state = container?.ready
        ? "ready"
        : (container?.state?.waiting?.reason ??
          container?.state?.terminated?.reason ??
          status?.phase ??
          "");
      const again =
        restarts > 0 ? `restarted ${restarts === 1 ? "once" : `${restarts} times`}` : "";
      return [metadata.name ?? "", state, age(metadata.creationTimestamp), again];
    });
}

function eventLines(events: readonly Event[]): string[][] {
  const time = ({ lastTimestamp, metadata }: Event) =>
    lastTimestamp ?? metadata.creationTimestamp ?? "";
  return events
    .toSorted((a, b) => (time(a) < time(b) ? -1 : 1))
    .slice(-shownEvents)
    .map((event) => {
      const [message = ""] = (event.message ?? "").split("\n");
      return [`${age(time(event))} ago`, event.reason ?? "", shortened(message, maxMessage)];
    });
}
