import {
  type Configuration,
  knative,
  knativeAnnotations,
  knativeLabels,
  knativeNames,
  type Revision,
} from "@spry/function";
import {
  controllerRef,
  deepEqual,
  getCondition,
  isBadRequest,
  isConditionTrue,
  isControlledBy,
  isInvalid,
  messageOf,
  type ObjectKey,
  type ReconcileResult,
  timestamp,
} from "@spry/kube";
import { byConfiguration } from "../caches.ts";
import { LivingConditions } from "../conditions.ts";
import { type Context, quoted, writeStatus } from "./context.ts";
import { collectRevisions } from "./garbage.ts";
import { generationOf } from "./generation.ts";

const ready = "Ready";

/** Configuration → a Revision for each generation of its template (knative.dev/serving/pkg/reconciler/configuration). */
export function configurationReconciler(
  context: Context,
): (key: ObjectKey) => Promise<ReconcileResult> {
  const { client, caches, clock } = context;
  return async (key) => {
    const configuration = caches.configurations.get(key);
    if (!configuration || configuration.metadata.deletionTimestamp) return {};
    const conditions = new LivingConditions([], configuration.status?.conditions, clock);
    const names = { ...configuration.status };
    const latest = await latestRevision(context, configuration, conditions);
    if (latest) {
      names.latestCreatedRevisionName = latest.metadata.name ?? "";
      reflect(conditions, latest, names.latestReadyRevisionName);
      const newest = newestReady(context, configuration, latest, names.latestReadyRevisionName);
      if (newest) names.latestReadyRevisionName = newest;
      if (newest && newest === latest.metadata.name) conditions.markTrue(ready);
    }
    await writeStatus(client, knative.configurations, configuration, {
      ...names,
      observedGeneration: configuration.metadata.generation ?? 0,
      conditions: conditions.list,
    });
    return collectRevisions(context, configuration);
  };
}

function reflect(
  conditions: LivingConditions,
  latest: Revision,
  latestReady: string | undefined,
): void {
  const { name = "" } = latest.metadata;
  const condition = getCondition(latest.status?.conditions, ready);
  if (condition?.status === "False") {
    const message = `Revision ${quoted(name)} failed with message: ${condition.message ?? ""}.`;
    conditions.markFalse(ready, "RevisionFailed", message);
  } else if (latestReady !== name) conditions.markUnknown(ready);
}

/** The Revision of this generation, created if it is missing; undefined when it cannot be, as the conditions say. */
async function latestRevision(
  context: Context,
  configuration: Configuration,
  conditions: LivingConditions,
): Promise<Revision | undefined> {
  const { client, caches } = context;
  const { namespace, name } = configuration.metadata;
  const failed = (why: string) => {
    const message = `Revision creation failed with message: ${why}.`;
    conditions.markFalse(ready, "RevisionFailed", message);
    return undefined;
  };
  if (nameConflict(context, configuration)) {
    const taken = configuration.spec.template.metadata?.name ?? "";
    return failed(`revisions.serving.knative.dev ${quoted(taken)} already exists`);
  }
  const ownName = configuration.spec.template.metadata?.name;
  const own = ownName ? caches.revisions.get(`${namespace}/${ownName}`) : undefined;
  if (own) return own;
  const generation = String(configuration.metadata.generation);
  const present = caches.revisions
    .byIndex(byConfiguration, `${namespace}/${name}`)
    .find(
      (revision) =>
        revision.metadata.labels?.[knativeLabels.configurationGeneration] === generation &&
        isControlledBy(revision, configuration),
    );
  if (present) return present;
  try {
    return await client.create(knative.revisions, desiredRevision(context, configuration));
  } catch (error) {
    // Refused for what it says: trying again changes nothing.
    if (!isInvalid(error) && !isBadRequest(error)) throw error;
    return failed(messageOf(error));
  }
}

/** Whether the name that the template brings is that of a Revision with another content. */
export function nameConflict({ caches }: Context, configuration: Configuration): boolean {
  const { template } = configuration.spec;
  const name = template.metadata?.name;
  if (!name) return false;
  const present = caches.revisions.get(`${configuration.metadata.namespace}/${name}`);
  if (!present) return false;
  if (!isControlledBy(present, configuration)) return true;
  const generation = present.metadata.labels?.[knativeLabels.configurationGeneration];
  if (generation === String(configuration.metadata.generation)) return false;
  return !deepEqual(template.spec, present.spec);
}

function desiredRevision({ clock }: Context, configuration: Configuration): Revision {
  const { namespace, name = "", generation = 1, labels, annotations, uid } = configuration.metadata;
  const { metadata, spec } = configuration.spec.template;
  const inherited = [knativeLabels.service, knativeLabels.serviceUid].flatMap((label) => {
    const value = labels?.[label];
    return value ? [[label, value]] : [];
  });
  const creator = annotations?.[knativeAnnotations.lastModifier];
  const routes = annotations?.[knativeAnnotations.routes];
  return {
    metadata: {
      name: metadata?.name || knativeNames.revision(name, generation),
      namespace: namespace ?? "",
      labels: {
        ...metadata?.labels,
        ...Object.fromEntries(inherited),
        [knativeLabels.configuration]: name,
        [knativeLabels.configurationUid]: uid ?? "",
        [knativeLabels.configurationGeneration]: String(generation),
        [knativeLabels.routingState]: routes ? "active" : "pending",
      },
      annotations: {
        ...metadata?.annotations,
        [knativeAnnotations.routingStateModified]: timestamp(clock),
        ...(creator ? { [knativeAnnotations.creator]: creator } : {}),
        ...(routes ? { [knativeAnnotations.routes]: routes } : {}),
      },
      ownerReferences: [controllerRef(knative.configurations, configuration)],
    },
    spec,
  };
}

/**
 * The newest Revision that is ready, from the one that is known to be on. A name that the user brought again is the
 * newest, whatever generation it is from.
 */
function newestReady(
  { caches }: Context,
  { metadata, spec }: Configuration,
  latest: Revision,
  known: string | undefined,
): string | undefined {
  const present = caches.revisions.byIndex(
    byConfiguration,
    `${metadata.namespace}/${metadata.name}`,
  );
  const current = present.find((revision) => revision.metadata.name === known);
  const from = current ? generationOf(current) : 0;
  const isOwnName = spec.template.metadata?.name === latest.metadata.name;
  const order = (revision: Revision) =>
    isOwnName && revision.metadata.name === latest.metadata.name
      ? Infinity
      : generationOf(revision);
  return present
    .filter((revision) => order(revision) >= from)
    .toSorted((a, b) => order(b) - order(a))
    .find((revision) => isRevisionReady(revision))?.metadata.name;
}

export function isRevisionReady({ metadata, status }: Revision): boolean {
  return (
    status?.observedGeneration === metadata.generation && isConditionTrue(status?.conditions, ready)
  );
}
