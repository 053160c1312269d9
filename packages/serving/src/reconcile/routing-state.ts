import {
  type Configuration,
  knative,
  knativeAnnotations,
  knativeLabels,
  type Revision,
  type Route,
} from "@spry/function";
import {
  controllerOf,
  isNotFound,
  type ObjectKey,
  type Resource,
  splitKey,
  timestamp,
} from "@spry/kube";
import { byConfiguration, byRoute, routesOf } from "../caches.ts";
import { type Context } from "./context.ts";
import { generationOf } from "./generation.ts";

type Labelled = Revision | Configuration;

/**
 * Notes on Revisions and Configurations which Routes lead to them, and on Revisions whether any does
 * (knative.dev/serving/pkg/reconciler/labeler). Notes are taken back only when the Route is settled: until then the former
 * Revisions may still be getting requests.
 */
export async function syncRouting(
  context: Context,
  route: Route,
  isSettled: boolean,
): Promise<void> {
  const { caches } = context;
  const { namespace, name = "" } = route.metadata;
  const revisions = new Set<string>();
  const configurations = new Set<string>();
  for (const target of [...(route.status?.traffic ?? []), ...(route.spec.traffic ?? [])]) {
    const { revisionName = "", latestRevision } = target;
    const revision = caches.revisions.get(`${namespace}/${revisionName}`);
    if (revision) revisions.add(revisionName);
    const owner = revision ? controllerOf(revision) : undefined;
    const configurationName =
      owner?.kind === knative.configurations.kind ? owner.name : target.configurationName;
    if (!configurationName) continue;
    configurations.add(configurationName);
    const configuration = caches.configurations.get(`${namespace}/${configurationName}`);
    if (!latestRevision || !configuration) continue;
    // The next one is to have its Pods by the time that it gets requests.
    for (const next of nextRevisions(context, configuration)) revisions.add(next);
  }
  await note(context, `${namespace}/${name}`, { revisions, configurations, remove: isSettled });
}

/**
 * The newest Revision that the Configuration's status names, and those that are newer still: one that has just been
 * created is there before the status says so, and must not lose its Pods in between.
 */
function nextRevisions({ caches }: Context, configuration: Configuration): string[] {
  const { namespace, name } = configuration.metadata;
  const latest = configuration.status?.latestCreatedRevisionName;
  const all = caches.revisions.byIndex(byConfiguration, `${namespace}/${name}`);
  const known = all.find(({ metadata }) => metadata.name === latest);
  const newer = all.filter((each) => generationOf(each) > (known ? generationOf(known) : 0));
  return [...(latest ? [latest] : []), ...newer.map(({ metadata }) => metadata.name ?? "")];
}

/** Takes back what was noted of a Route that is gone. */
export function clearRouting(context: Context, route: ObjectKey): Promise<void> {
  return note(context, route, { revisions: new Set(), configurations: new Set(), remove: true });
}

async function note(
  context: Context,
  route: ObjectKey,
  wanted: { revisions: Set<string>; configurations: Set<string>; remove: boolean },
): Promise<void> {
  const { caches } = context;
  const { namespace } = splitKey(route);
  const parts = [
    { resource: knative.revisions, cache: caches.revisions, names: wanted.revisions },
    {
      resource: knative.configurations,
      cache: caches.configurations,
      names: wanted.configurations,
    },
  ] as const;
  for (const { resource, cache, names } of parts) {
    for (const name of names) {
      const object = cache.get(`${namespace}/${name}`);
      if (object) await setRoute(context, resource, object, route, true);
    }
    if (!wanted.remove) continue;
    for (const object of cache.byIndex(byRoute, route)) {
      if (!names.has(object.metadata.name ?? ""))
        await setRoute(context, resource, object, route, false);
    }
  }
}

async function setRoute(
  { client, clock }: Context,
  resource: Resource,
  object: Labelled,
  route: ObjectKey,
  present: boolean,
): Promise<void> {
  const { namespace, name = "", labels } = object.metadata;
  const { name: routeName } = splitKey(route);
  const before = routesOf(object);
  const others = before.filter((each) => each !== routeName);
  const after = present ? [...others, routeName].toSorted() : others;
  const state = after.length > 0 ? "active" : "reserve";
  const isRevision = resource.plural === knative.revisions.plural;
  const changesState = isRevision && labels?.[knativeLabels.routingState] !== state;
  if (before.includes(routeName) === present && !changesState) return;
  const patch = {
    metadata: {
      annotations: {
        [knativeAnnotations.routes]: after.length > 0 ? after.join(",") : null,
        ...(changesState ? { [knativeAnnotations.routingStateModified]: timestamp(clock) } : {}),
      },
      ...(changesState ? { labels: { [knativeLabels.routingState]: state } } : {}),
    },
  };
  try {
    await client.patch(resource, { namespace, name }, patch);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
