import {
  type Configuration,
  knativeLabels,
  knativeNames,
  type Revision,
  type Route,
  type TrafficTarget,
} from "@spry/function";
import { getCondition } from "@spry/kube";
import { isRevisionReady } from "./configuration.ts";
import { quoted } from "./context.ts";

/** Why requests cannot be divided as the spec says: the condition `AllTrafficAssigned`. */
export interface TrafficProblem {
  status: "False" | "Unknown";
  reason: string;
  message: string;
}

export interface Lookup {
  configuration(name: string): Configuration | undefined;
  revision(name: string): Revision | undefined;
}

/**
 * The targets of a Route with the Revisions that get their requests (knative.dev/serving/pkg/reconciler/route/traffic). One
 * target without a ready Revision is a problem of the whole Route: then everything stays as it is.
 */
export function resolveTraffic(
  route: Route,
  lookup: Lookup,
): { targets: TrafficTarget[] } | { problem: TrafficProblem } {
  const targets: TrafficTarget[] = [];
  let problem: TrafficProblem | undefined;
  for (const target of route.spec.traffic ?? []) {
    const found = target.revisionName
      ? pinned(route, target.revisionName, lookup)
      : latest(target.configurationName ?? "", lookup);
    if ("problem" in found) {
      // What cannot become ready is reported before what may.
      if (problem?.status !== "False") problem = found.problem;
      continue;
    }
    addMerged(targets, {
      ...(target.tag ? { tag: target.tag } : {}),
      revisionName: found.revision.metadata.name ?? "",
      latestRevision: target.latestRevision ?? !target.revisionName,
      percent: target.percent ?? 0,
    });
  }
  return problem ? { problem } : { targets };
}

type Found = { revision: Revision } | { problem: TrafficProblem };

function latest(name: string, lookup: Lookup): Found {
  const configuration = lookup.configuration(name);
  if (!configuration) return missing("Configuration", name);
  const revisionName = configuration.status?.latestReadyRevisionName;
  if (!revisionName) {
    const ready = getCondition(configuration.status?.conditions, "Ready");
    return ready?.status === "False"
      ? problem("False", `Configuration ${quoted(name)} does not have any ready Revision.`)
      : problem(
          "Unknown",
          `Configuration ${quoted(name)} is waiting for a Revision to become ready.`,
        );
  }
  const revision = lookup.revision(revisionName);
  return revision ? ifReady(revision) : missing("Revision", revisionName);
}

function pinned({ metadata }: Route, name: string, lookup: Lookup): Found {
  const revision = lookup.revision(name);
  if (!revision) return missing("Revision", name);
  const service = metadata.labels?.[knativeLabels.service];
  const actual = revision.metadata.labels?.[knativeLabels.service];
  if (service && service !== actual) {
    const message = actual
      ? `Revision ${quoted(name)} belongs to Service ${quoted(actual)}, not Service ${quoted(service)}.`
      : `Revision ${quoted(name)} does not belong to Service ${quoted(service)}.`;
    return { problem: { status: "False", reason: "RevisionNotOwned", message } };
  }
  return ifReady(revision);
}

function ifReady(revision: Revision): Found {
  if (isRevisionReady(revision)) return { revision };
  const { name = "" } = revision.metadata;
  const ready = getCondition(revision.status?.conditions, "Ready");
  return ready?.status === "False"
    ? problem("False", `Revision ${quoted(name)} failed to become ready.`)
    : problem("Unknown", `Revision ${quoted(name)} is not yet ready.`);
}

function problem(status: TrafficProblem["status"], message: string): Found {
  return { problem: { status, reason: "RevisionMissing", message } };
}

function missing(kind: string, name: string): Found {
  const message = `${kind} ${quoted(name)} referenced in traffic not found.`;
  return { problem: { status: "False", reason: `${kind}Missing`, message } };
}

/** Equal targets of one tag are one, with the sum of their shares. */
function addMerged(targets: TrafficTarget[], target: TrafficTarget): void {
  const same = targets.find(
    (each) =>
      each.tag === target.tag &&
      each.revisionName === target.revisionName &&
      each.latestRevision === target.latestRevision,
  );
  if (same) same.percent = (same.percent ?? 0) + (target.percent ?? 0);
  else targets.push(target);
}

/** The names of the Services by which a Route is called: its own, and one of each tag. */
export function serviceNamesOf(route: Route, targets: readonly TrafficTarget[]): string[] {
  const { name = "" } = route.metadata;
  const tags = targets.flatMap(({ tag }) => (tag ? [knativeNames.tagged(tag, name)] : []));
  return [name, ...new Set(tags)];
}
