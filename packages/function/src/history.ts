/** The history of a Function: `apps/v1 ControllerRevision`s that it owns (docs/compatibility.md#history). */
import { deepEqual, isControlledBy, type KubeObject, type Resource } from "@spry/kube/browser";
import { type Function, type FunctionSpec } from "./types.ts";

/** What a version is: enough to run it again without a build. */
export interface Version {
  /** Without what says how much of it runs: `replicas` and `traffic`. */
  spec: FunctionSpec;
  /** Of a Git source. */
  commit?: string;
  /** By digest. */
  image: string;
}

/** The `data` of a revision. It is never changed. */
export interface RevisionData extends Version {
  buildKey: string;
  /** The value of the annotation that asked for a build of its own, if one did: it is part of the build key. */
  rebuild?: string;
  /** The user whose request changed the spec; absent where no request did (a new commit, another version of Spry). */
  author?: string;
  /** RFC 3339 */
  time: string;
  /** Digest of the Pod template, of a Function that is served on demand: a Knative Revision has one for ever. */
  template?: string;
}

export interface FunctionRevision extends KubeObject {
  /** 1, 2, … for each Function. */
  revision: number;
  data: RevisionData;
}

export const functionRevisions: Resource<FunctionRevision> = {
  group: "apps",
  version: "v1",
  kind: "ControllerRevision",
  plural: "controllerrevisions",
  namespaced: true,
};

/** How many revisions of a Function are kept, and what an operator may choose. */
export const historyLimits = { default: 10, least: 1, most: 100 } as const;

/** Those of the Function among ControllerRevisions, newest first. */
export function revisionsOf(
  fn: Function,
  candidates: Iterable<FunctionRevision>,
): FunctionRevision[] {
  return [...candidates]
    .filter((each) => isControlledBy(each, fn) && isReadable(each))
    .sort((a, b) => b.revision - a.revision);
}

/** Other programs may write ControllerRevisions, too. */
function isReadable({ revision, data }: Partial<FunctionRevision>): boolean {
  const { spec, image, buildKey } = data ?? {};
  return (
    Number.isSafeInteger(revision) &&
    typeof spec?.source === "object" &&
    spec.source !== null &&
    typeof image === "string" &&
    typeof buildKey === "string"
  );
}

/** The part of a spec that the history records: without replicas, traffic and schedules. */
export function recordedSpec(spec: FunctionSpec): FunctionSpec {
  const { replicas: _replicas, traffic: _traffic, schedules: _schedules, ...recorded } = spec;
  return recorded;
}

/**
 * Whether two versions run the same code in the same way: however much of it (`scaleConfig`), and by whatever name the
 * commit was found.
 */
export function isSameVersion(a: Omit<Version, "image">, b: Omit<Version, "image">): boolean {
  return deepEqual(substanceOf(a), substanceOf(b));
}

function substanceOf({ spec, commit }: Omit<Version, "image">): FunctionSpec {
  const { scaleConfig: _scaleConfig, ...rest } = recordedSpec(spec);
  return pinned(rest, commit);
}

/**
 * The spec by which a Function returns to a revision: that revision's, except how it is scaled and which revisions get
 * its requests; a Git source with the commit as its reference, because the reference itself has moved on.
 */
export function restoredSpec(current: FunctionSpec, { spec, commit }: Version): FunctionSpec {
  const { replicas, scaleConfig, traffic, schedules } = current;
  const { scaleConfig: _scaleConfig, ...recorded } = recordedSpec(spec);
  return {
    ...pinned(recorded, commit),
    ...(replicas === undefined ? {} : { replicas }),
    ...(scaleConfig === undefined ? {} : { scaleConfig }),
    ...(traffic === undefined ? {} : { traffic }),
    ...(schedules === undefined ? {} : { schedules }),
  };
}

function pinned(spec: FunctionSpec, commit: string | undefined): FunctionSpec {
  const { gitRepository } = spec.source;
  if (!gitRepository || commit === undefined) return spec;
  return { ...spec, source: { gitRepository: { ...gitRepository, reference: commit } } };
}
