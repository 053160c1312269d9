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
import { printableJson } from "../printable-json.ts";
import { shownState, statusWord } from "../shown-state.ts";
import { tableLines } from "../table.ts";
import { columnsOf, shortened, withShortDigests, wrapped } from "../terminal-width.ts";
import { type UserError } from "../user-error.ts";
import { age } from "./get.ts";

const shownEvents = 10;
const shownVersions = 5;
const defaultProfile = "L";
/** Of an Event: the rest is in its object. */
const maxMessage = 160;
/** Prints a Function's state, why it is so and what to do, its Pods, versions and Events. */
export async function describe(
  name: string,
  options: GlobalOptions & { output?: string },
): Promise<void> {
  const connection = await connect(options);
  const { client, namespace } = connection;
  const fn = await findFunction(client, namespace, name);
  const labelSelector = `${labels.functionName}=${name}`;
  const [pods, versions, events] = await Promise.all([
    listed<Pod>(client.list(resources.pods, { namespace, labelSelector })),
    listed(client.list(functionRevisions, { namespace, labelSelector })),
    eventsOf(client, fn),
  ]);
  const own = revisionsOf(fn, versions);
  const newest = own[0]?.revision;
  if (options.output === "json")
    return console.log(
      printableJson(
        {
          name,
          namespace,
          state: statusWord(fn),
          ...(fn.status?.revision !== undefined && { servingVersion: fn.status.revision }),
          url: urlFor(fn, connection),
          ...problemFields(fn, newest),
          runtime: fn.status?.runtime ?? fn.spec.runtime,
          image: fn.status?.build?.image,
          replicas: fn.status?.replicas ?? 0,
          instances: pods.filter(isInstance).map(instanceOf),
          versions: own.map(({ revision, data: { time, author } }) => ({ revision, time, author })),
          events: inOrder(events).map((event) => ({
            time: timeOf(event),
            type: event.type,
            reason: event.reason,
            message: event.message,
          })),
        },
        2,
      ),
    );
  const lines = [
    ...summary(fn, connection, newest),
    ...problem(fn, newest),
    ...section("Instances", podLines(pods)),
    ...section(
      "Versions",
      own
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

function urlFor({ metadata }: Function, { gateway }: Connection): string {
  const { name = "", namespace = "" } = metadata;
  return gateway
    ? urlOf(gateway, name, namespace)
    : `http://${name}.${namespace}.svc.cluster.local`;
}

function summary(fn: Function, connection: Connection, newest: number | undefined): string[] {
  const { metadata, spec, status } = fn;
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
    ["Status", statusLine(fn, newest)],
    ["URL", urlFor(fn, connection)],
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

/** With the version that serves, also where all is well. */
function statusLine(fn: Function, newest: number | undefined): string {
  const word = statusWord(fn);
  const serving = fn.status?.revision;
  const isWithout = serving === undefined || word === "Failed";
  return isWithout ? shownState(fn, newest) : `${word}, version ${serving} serves`;
}

/** On a terminal, the digest's first digits: those that `history` and Events show. */
function imageText(image: string | undefined): string {
  if (image === undefined) return "not built yet";
  return columnsOf(process.stdout) === undefined ? image : withShortDigests(image);
}

/** The first condition that is False, in words. */
function failureIn(fn: Function, version: number | undefined): UserError | undefined {
  const failed = ["ConfigurationReady", "BuildReady", "Running"]
    .map((type) => fn.status?.conditions?.find((each) => each.type === type))
    .find((each) => each?.status === "False");
  return failed && failureOf(fn, failed, version);
}

function problemFields(fn: Function, version: number | undefined): object {
  const failure = failureIn(fn, version);
  if (!failure) return {};
  const { message, wayOut = "" } = failure;
  return { problem: withShownCommands(message), wayOut: withShownCommands(wayOut) };
}

function problem(fn: Function, version: number | undefined): string[] {
  const conditions = fn.status?.conditions ?? [];
  const failure = failureIn(fn, version);
  if (failure) {
    const { message, wayOut = "" } = failure;
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
const isInstance = ({ metadata: { labels: found = {} } }: Pod): boolean =>
  found[labels.resource] === "deployment" || knativeLabels.revision in found;

function podLines(pods: readonly Pod[]): string[][] {
  return pods
    .filter(isInstance)
    .map(instanceOf)
    .map(({ name, state, createdAt, restarts }) => {
      const again =
        restarts > 0 ? `restarted ${restarts === 1 ? "once" : `${restarts} times`}` : "";
      return [name, state, age(createdAt), again];
    });
}

function instanceOf({ metadata, status }: Pod) {
  const [container] = status?.containerStatuses ?? [];
  const { waiting, terminated } = container?.state ?? {};
  return {
    name: metadata.name ?? "",
    state: container?.ready
      ? "ready"
      : (waiting?.reason ?? terminated?.reason ?? status?.phase ?? ""),
    createdAt: metadata.creationTimestamp,
    restarts: container?.restartCount ?? 0,
  };
}

const timeOf = ({ lastTimestamp, metadata }: Event): string =>
  lastTimestamp ?? metadata.creationTimestamp ?? "";

const inOrder = (events: readonly Event[]): Event[] =>
  events.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1));

function eventLines(events: readonly Event[]): string[][] {
  return inOrder(events)
    .slice(-shownEvents)
    .map((event) => {
      const [message = ""] = (event.message ?? "").split("\n");
      return [`${age(timeOf(event))} ago`, event.reason ?? "", shortened(message, maxMessage)];
    });
}
