import { knative, knativeNames, type Revision } from "@spry/function";
import {
  type Deployment,
  isAlreadyExists,
  isConditionTrue,
  isControlledBy,
  keyOf,
  mergePatchBetween,
  type ObjectKey,
  type ReconcileResult,
  resources,
} from "@spry/kube";
import { LivingConditions } from "../conditions.ts";
import { minScaleWhileStarting } from "../scaler/scale-spec.ts";
import { type Context, quoted, writeStatus } from "./context.ts";
import {
  deploymentHashLabel,
  desiredDeployment,
  desiredPrivateService,
  type Digests,
} from "./deployment.ts";
import { ensurePodAutoscaler } from "./pod-autoscaler.ts";
import { imageDigests } from "./image-digests.ts";
import {
  active,
  containerHealthy,
  reflectDeployment,
  reflectScale,
  resourcesAvailable,
} from "./revision-conditions.ts";

/** Whether a Revision has once had the Pods that it begins with: from then on it may have none, and stays ready. */
const initializedAnnotation = "serving.spry.io/scale-target-initialized";

/** Revision → Deployment and private Service (knative.dev/serving/pkg/reconciler/revision). */
export function revisionReconciler(
  context: Context,
): (key: ObjectKey) => Promise<ReconcileResult | void> {
  const { client, caches, clock } = context;
  return async (key) => {
    const revision = caches.revisions.get(key);
    if (!revision || revision.metadata.deletionTimestamp) return;
    const conditions = new LivingConditions(
      [resourcesAvailable, containerHealthy],
      revision.status?.conditions,
      clock,
    );
    const digests = await imageDigests(context, revision);
    const deployment = await ensureDeployment(context, revision, digests.byContainer, conditions);
    await ensurePrivateService(context, revision);
    if (deployment) await ensurePodAutoscaler(context, revision);
    const minReady = minScaleWhileStarting(
      revision,
      context.settings.autoscaler,
      isInitialized(revision),
    );
    if (deployment) {
      reflectDeployment(conditions, deployment, podsOf(context, revision));
      reflectScale(conditions, deployment, { initialized: isInitialized(revision), minReady });
    }
    const ready = deployment?.status?.readyReplicas ?? 0;
    const initialized = isInitialized(revision) || (deployment !== undefined && ready >= minReady);
    await writeStatus(client, knative.revisions, revision, {
      ...revision.status,
      ...(initialized
        ? { annotations: { ...revision.status?.annotations, [initializedAnnotation]: "true" } }
        : {}),
      containerStatuses: digests.statuses,
      ...(digests.initStatuses.length > 0 ? { initContainerStatuses: digests.initStatuses } : {}),
      actualReplicas: ready,
      desiredReplicas: deployment?.spec?.replicas ?? 0,
      observedGeneration: revision.metadata.generation ?? 0,
      conditions: conditions.list,
    });
  };
}

export function isInitialized({ status }: Revision): boolean {
  return status?.annotations?.[initializedAnnotation] === "true";
}

function podsOf({ caches }: Context, revision: Revision) {
  return caches.pods.byIndex("revision", keyOf(revision));
}

async function ensureDeployment(
  { client, caches, settings }: Context,
  revision: Revision,
  digests: Digests,
  conditions: LivingConditions,
): Promise<Deployment | undefined> {
  const { name = "", namespace } = revision.metadata;
  const desired = desiredDeployment(revision, settings, digests);
  const observed = caches.deployments.get(`${namespace}/${desired.metadata.name}`);
  if (!observed) {
    for (const type of [resourcesAvailable, containerHealthy, active])
      if (!isConditionTrue(conditions.list, type)) conditions.markUnknown(type, "Deploying");
    try {
      return await client.create(resources.deployments, desired);
    } catch (error) {
      // Only those with a Revision's label are in the cache.
      if (!isAlreadyExists(error)) throw error;
      const target = { namespace, name: desired.metadata.name ?? "" };
      const present = await client.get(resources.deployments, target);
      if (isControlledBy(present, revision)) throw error;
    }
  }
  if (!observed || !isControlledBy(observed, revision)) {
    const owned = quoted(knativeNames.deployment(name));
    const message = `There is an existing Deployment ${owned} that we do not own.`;
    conditions.markFalse(resourcesAvailable, "NotOwned", message);
    return undefined;
  }
  const hash = desired.metadata.labels?.[deploymentHashLabel];
  if (observed.metadata.labels?.[deploymentHashLabel] === hash) return observed;
  // The replicas are the scaler's.
  const patch = {
    metadata: {
      labels: desired.metadata.labels,
      annotations: desired.metadata.annotations,
      resourceVersion: observed.metadata.resourceVersion,
    },
    spec: {
      progressDeadlineSeconds: desired.spec.progressDeadlineSeconds,
      template: mergePatchBetween(observed.spec?.template, desired.spec.template) ?? {},
    },
  };
  return client.patch(
    resources.deployments,
    { namespace, name: observed.metadata.name ?? "" },
    patch,
  );
}

async function ensurePrivateService(
  { client, caches }: Context,
  revision: Revision,
): Promise<void> {
  const desired = desiredPrivateService(revision);
  if (caches.coreServices.get(keyOf(desired))) return;
  await client.create(resources.services, desired);
}
