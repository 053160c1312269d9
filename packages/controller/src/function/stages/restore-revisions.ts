/**
 * `spec.traffic` may name a revision from a time when the Function was a Deployment: Knative has no Revision of it. The
 * history has all that one is made of.
 */
import {
  type Configuration,
  type Function,
  type FunctionRevision,
  functionRevisions,
  knative,
  knativeLabels,
  knativeNames,
  names,
  type Revision,
  validateFunction,
} from "@spry/function";
import { controllerRef, isAlreadyExists, isControlledBy } from "@spry/kube";
import { getIfThere } from "../../children.ts";
import { desiredKService } from "../desired/kservice.ts";
import { isServing } from "../serving/kservice-state.ts";
import { type Deps, done, type Draft, type Stage } from "../stage.ts";
import { refused } from "./refused.ts";

const recheckAfterMs = 250;

export const restoreRevisions: Stage = {
  name: "restore",
  condition: "Running",

  async run(draft, deps) {
    const { fn, kservice, namespace, name } = draft;
    const numbers = (fn.spec.traffic ?? []).flatMap(({ revision }) => revision ?? []);
    const missing = numbers.filter((number) => number !== draft.revision);
    // What is ready has all its Revisions.
    if (missing.length === 0 || (kservice && isServing(kservice))) return done;
    try {
      const configuration = await getIfThere(deps.client, knative.configurations, {
        namespace,
        name,
      });
      // The serving room is about to make it.
      if (!configuration) return { ...done, recheckAfterMs };
      for (const number of new Set(missing)) await restore(draft, configuration, number, deps);
      return done;
    } catch (error) {
      return refused(error, "DeploymentFailed");
    }
  },
};

/** Nothing where the history does not have the number: then the Route's condition says that its Revision is missing. */
async function restore(
  { fn, namespace, name }: Draft,
  configuration: Configuration,
  number: number,
  deps: Deps,
): Promise<void> {
  const target = { namespace, name: knativeNames.revision(name, number) };
  if (await getIfThere(deps.client, knative.revisions, target)) return;
  const recorded = await getIfThere(deps.client, functionRevisions, target);
  if (!recorded || !isControlledBy(recorded, fn) || !isSound(fn, recorded)) return;
  try {
    await deps.client.create(knative.revisions, revisionOf(fn, recorded, configuration, deps));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/**
 * A client that may write ControllerRevisions may write anything into them: what is restored has to be a valid Function,
 * with an image from the Function's own repository.
 */
function isSound({ metadata }: Function, { data }: FunctionRevision): boolean {
  const { namespace = "", name = "" } = metadata;
  const [repository = "", digest] = data.image.split("@");
  const own = [names.repository, names.externalRepository, names.formerRepository].map((of) =>
    of(namespace, name),
  );
  return (
    digest !== undefined &&
    own.some((each) => repository.endsWith(`/${each}`)) &&
    validateFunction({ metadata, spec: data.spec }).length === 0
  );
}

/** What Knative would have made of the Function then. How it is scaled is up to the Function now. */
function revisionOf(
  fn: Function,
  { revision, data }: FunctionRevision,
  configuration: Configuration,
  { settings }: Deps,
): Revision {
  const { scaleConfig, concurrency } = fn.spec;
  const now = {
    ...(scaleConfig ? { scaleConfig } : {}),
    ...(concurrency ? { concurrency } : {}),
  };
  const { scaleConfig: _scale, concurrency: _concurrency, ...recorded } = data.spec;
  const former = { ...fn, spec: { ...recorded, ...now } };
  const { image, buildKey } = data;
  const { template } = desiredKService(former, settings, { image, buildKey, revision }).spec;
  const owner = configuration.metadata;
  const inherited = [knativeLabels.service, knativeLabels.serviceUid].flatMap((label) => {
    const value = owner.labels?.[label];
    return value === undefined ? [] : [[label, value]];
  });
  return {
    metadata: {
      ...template.metadata,
      namespace: owner.namespace ?? "",
      labels: {
        ...template.metadata?.labels,
        ...Object.fromEntries(inherited),
        [knativeLabels.configuration]: owner.name ?? "",
        [knativeLabels.configurationUid]: owner.uid ?? "",
        // Older than all that the Configuration has made.
        [knativeLabels.configurationGeneration]: "0",
        [knativeLabels.routingState]: "pending",
      },
      ownerReferences: [controllerRef(knative.configurations, configuration)],
    },
    spec: template.spec,
  };
}
