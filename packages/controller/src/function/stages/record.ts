/**
 * The history of a Function (docs/compatibility.md#history): a revision for each version that is deployed, with what it
 * takes to return to it. It is recorded when the image is known and before anything runs it: a build that fails
 * leaves none, and no version serves without one.
 */
import {
  annotations,
  type FunctionRevision,
  functionRevisions,
  functions,
  isServedOnDemand,
  knativeNames,
  labelsOf,
  managedBy,
  recordedSpec,
  type RevisionData,
} from "@spry/function";
import {
  controllerRef,
  isAlreadyExists,
  isControlledBy,
  isInvalid,
  messageOf,
  StatusError,
  timestamp,
} from "@spry/kube";
import { deleteIfThere, isRefusal, removeLeftover } from "../../children.ts";
import { desiredKService } from "../desired/kservice.ts";
import { digestOf, inOrder } from "../../digest.ts";
import { type KnownRevision, knownRevisionOf, ownRevisions } from "../known-revision.ts";
import { builtOf, type Deps, done, type Draft, type Outcome, type Stage } from "../stage.ts";
import { refusedRecheckMs } from "./refused.ts";

export const recordRevision: Stage = {
  name: "record",
  condition: "Running",

  async run(draft, deps) {
    const known = ownRevisions(draft.fn, deps.caches.revisions.byIndex("function", draft.key));
    const data = await dataOf(draft, known[0], deps);
    const [newest] = known;
    try {
      draft.revision =
        newest && isSame(newest, data) ? newest.revision : await record(draft, known, data, deps);
    } catch (error) {
      if (!isRefusal(error) && !isInvalid(error) && !isTooLarge(error)) throw error;
      return withoutRecord(draft, messageOf(error), deps);
    }
    await removeOld(draft, known, deps);
    return done;
  },
};

/** What a revision of the present state would hold. */
async function dataOf(
  draft: Draft,
  newest: KnownRevision | undefined,
  deps: Deps,
): Promise<RevisionData> {
  const { fn, commit } = draft;
  const { [annotations.rebuild]: rebuild, [annotations.lastModifier]: author } =
    fn.metadata.annotations ?? {};
  const spec = recordedSpec(fn.spec);
  const template = isServedOnDemand(fn.spec) ? await templateDigest(draft, deps) : undefined;
  // The first split of the requests is a change that a person made, too: it changes how the Function is served.
  const isRequested =
    newest?.version.spec !== digestOf(spec) ||
    newest.version.rebuild !== (rebuild || undefined) ||
    (newest.version.template === undefined) !== (template === undefined);
  return {
    spec,
    ...(commit === undefined ? {} : { commit }),
    ...builtOf(draft),
    ...(rebuild ? { rebuild } : {}),
    ...(isRequested && author ? { author } : {}),
    time: timestamp(deps.clock),
    ...(template === undefined ? {} : { template }),
  };
}

/** A Knative Revision never changes: another template, for whatever reason, needs another number. */
async function templateDigest(draft: Draft, { settings, references }: Deps): Promise<string> {
  const { fn, key } = draft;
  const digest = await references.digest(key, fn);
  const inputs = { ...builtOf(draft), revision: 0, references: digest };
  return digestOf(desiredKService(fn, settings, inputs).spec.template);
}

function isSame({ version }: KnownRevision, data: RevisionData): boolean {
  return (
    version.spec === digestOf(data.spec) &&
    version.image === data.image &&
    version.commit === data.commit &&
    version.template === data.template
  );
}

async function record(
  { fn, namespace, name, status, key }: Draft,
  known: readonly KnownRevision[],
  data: RevisionData,
  { client, caches }: Deps,
): Promise<number> {
  const template = caches.kservices.get(key)?.spec.template.metadata?.name ?? "";
  const served = Number(/-(\d+)$/.exec(template)?.[1] ?? 0);
  const revision = Math.max(known[0]?.revision ?? 0, status.revision ?? 0, served) + 1;
  const object: FunctionRevision = {
    metadata: {
      name: knativeNames.revision(name, revision),
      namespace,
      labels: labelsOf(fn),
      ownerReferences: [controllerRef(functions, fn)],
    },
    revision,
    // kube-apiserver refuses `kubectl label` as a change of the data when their text is in another order.
    data: inOrder(data) as RevisionData,
  };
  try {
    await client.create(functionRevisions, object, { fieldManager: managedBy });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    // The cache may not show yet what an earlier pass has recorded.
    const target = { namespace, name: object.metadata.name ?? "" };
    const existing = await client.get(functionRevisions, target);
    if (!isControlledBy(existing, fn)) await removeLeftover(client, functionRevisions, existing);
    if (!isSame(knownRevisionOf(existing), data)) {
      throw new Error(`waiting for the cache to show ControllerRevision ${target.name}`, {
        cause: error,
      });
    }
  }
  return revision;
}

/** Of what is more than the limit, the oldest; never what serves. */
async function removeOld(
  { fn, status, revision }: Draft,
  known: readonly KnownRevision[],
  { client, settings }: Deps,
): Promise<void> {
  const pinned = (fn.spec.traffic ?? []).map((share) => share.revision);
  const needed = new Set([revision, status.revision, ...pinned]);
  const others = known.filter((each) => !needed.has(each.revision));
  const isNew = known[0]?.revision !== revision;
  const room = settings.historyLimit - (known.length - others.length) - (isNew ? 1 : 0);
  for (const old of others.slice(Math.max(0, room))) {
    await deleteIfThere(client, functionRevisions, old);
  }
}

/** A quota, a policy or the size can prevent a record. A Deployment needs none; a Knative Revision needs its number. */
function withoutRecord(draft: Draft, problem: string, { log }: Deps): Outcome {
  const message = `the version cannot be recorded: ${problem}`;
  if (isServedOnDemand(draft.fn.spec)) {
    return { kind: "wait", reason: "DeploymentFailed", message, recheckAfterMs: refusedRecheckMs };
  }
  log.warn({ function: draft.key, error: problem }, "recording a revision");
  return done;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 413;
}
