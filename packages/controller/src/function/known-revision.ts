import { type Function, type FunctionRevision } from "@spry/function";
import { isControlledBy, type KubeObject } from "@spry/kube";
import { digestOf } from "../digest.ts";

/** What the controller keeps in memory of a revision: whether another one is the same, and its image. */
export interface KnownRevision extends KubeObject {
  revision: number;
  version: RevisionDigest;
}

/** A version, for comparing: specs with large sources are many times the rest. */
export interface RevisionDigest {
  spec: string;
  commit?: string | undefined;
  image?: string | undefined;
  buildKey?: string | undefined;
  rebuild?: string | undefined;
  template?: string | undefined;
}

export function knownRevisionOf({ metadata, revision, data }: FunctionRevision): KnownRevision {
  // A client that may write ControllerRevisions may write anything into them.
  const { spec, commit, image, buildKey, rebuild, template } = data ?? {};
  const version = { spec: digestOf(spec), commit, image, buildKey, rebuild, template };
  return { metadata, revision, version };
}

/** Those of the Function, newest first. */
export function ownRevisions(fn: Function, all: Iterable<KnownRevision>): KnownRevision[] {
  return [...all]
    .filter((each) => isControlledBy(each, fn) && Number.isSafeInteger(each.revision))
    .sort((a, b) => b.revision - a.revision);
}
