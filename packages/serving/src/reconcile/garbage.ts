import {
  type Configuration,
  knative,
  knativeAnnotations,
  knativeLabels,
  type Revision,
} from "@spry/function";
import { isNotFound, type ReconcileResult } from "@spry/kube";
import { byConfiguration } from "../caches.ts";
import { type Context } from "./context.ts";

const lookAgainMs = 3_600_000;

/** Deletes Revisions that no Route has referred to for long (`config-gc`; knative.dev/serving/pkg/reconciler/gc). */
export async function collectRevisions(
  context: Context,
  configuration: Configuration,
): Promise<ReconcileResult> {
  const { client, caches } = context;
  const { namespace, name } = configuration.metadata;
  const all = caches.revisions.byIndex(byConfiguration, `${namespace}/${name}`);
  const idle = all.filter((revision) => isIdle(revision, configuration));
  if (idle.length === 0) return {};
  for (const revision of superfluous(context, idle)) {
    const { uid, name: old = "" } = revision.metadata;
    try {
      const preconditions = uid ? { preconditions: { uid } } : {};
      await client.delete(knative.revisions, { namespace, name: old }, preconditions);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return { requeueAfterMs: lookAgainMs };
}

function isIdle(revision: Revision, { status }: Configuration): boolean {
  const { name, labels, annotations, deletionTimestamp } = revision.metadata;
  if (deletionTimestamp || status?.latestReadyRevisionName === name) return false;
  if (status?.latestCreatedRevisionName === name) return false;
  if (annotations?.[knativeAnnotations.noGc]?.toLowerCase() === "true") return false;
  return labels?.[knativeLabels.routingState] === "reserve";
}

function superfluous({ settings, clock }: Context, idle: readonly Revision[]): Revision[] {
  const { sinceCreateMs, sinceActiveMs, minNonActive, maxNonActive } = settings.gc;
  const created = ({ metadata }: Revision) => Date.parse(metadata.creationTimestamp ?? "") || 0;
  const active = (revision: Revision) => {
    const changed = revision.metadata.annotations?.[knativeAnnotations.routingStateModified];
    return Date.parse(changed ?? "") || created(revision);
  };
  const now = clock.now();
  const oldestFirst = idle.toSorted((a, b) => active(a) - active(b));
  const areTimesOff = sinceCreateMs === Infinity && sinceActiveMs === Infinity;
  const isStale = (revision: Revision) =>
    !areTimesOff &&
    (sinceCreateMs === Infinity || now - created(revision) >= sinceCreateMs) &&
    (sinceActiveMs === Infinity || now - active(revision) >= sinceActiveMs);
  const stale = oldestFirst.filter(isStale).slice(0, Math.max(0, idle.length - minNonActive));
  const left = oldestFirst.filter((revision) => !stale.includes(revision));
  const excess = left.slice(0, Math.max(0, left.length - maxNonActive));
  return [...stale, ...excess];
}
