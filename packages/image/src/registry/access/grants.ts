/** Who may do what with which repository of the platform's own registry. Pure: what the names say, and no more. */
import { names, platformRepositories } from "@spry/function";

export type Action = "pull" | "push" | "delete";

/** What a login is good for. */
export type Grant =
  /** Everything. */
  | { for: "platform" }
  /** A node by itself, for Pods that bring no login: what the platform has made. */
  | { for: "node" }
  /** Users who may read a namespace's Secrets. The uid distinguishes it from an earlier namespace of that name. */
  | { for: "namespace"; namespace: string; uid: string }
  | BuildGrant;

/** One build, while its Job runs. */
export interface BuildGrant {
  for: "build";
  namespace: string;
  /** Of the namespace. */
  uid: string;
  function: string;
  job: { name: string; uid: string };
  /** Milliseconds since the epoch; the Job has ended long before, by its own limit. */
  expiresAt: number;
  /** Repository of a base image that is none of the platform's; one of another namespace gives nothing. */
  base?: string | undefined;
}

/** Whose share of the registry a grant uses, by the first part of the repositories' names; undefined for the platform and its nodes. */
export function tenantOf(grant: Grant): string | undefined {
  return "namespace" in grant ? names.repositories(grant.namespace) : undefined;
}

/** Whether the grant covers the action. Nothing but its arguments decides, so that a refusal says nothing of what exists. */
export function allows(grant: Grant, action: Action, repository: string): boolean {
  if (grant.for === "platform") return true;
  if (action === "delete") return false;
  if (action === "pull" && isBelow(repository, platformRepositories)) return true;
  if (grant.for === "node" || !isBelow(repository, names.repositories(grant.namespace)))
    return false;
  const isCache = isBelow(repository, names.dependencyCaches(grant.namespace));
  if (grant.for === "namespace") return action === "pull" || !isCache;
  if (isCache || repository === names.repository(grant.namespace, grant.function)) return true;
  return action === "pull" && repository === grant.base;
}

/**
 * Whether a tag that exists may be given to another manifest. What builds of a namespace share is written once: no build can
 * put something else in the place of what another one is going to use.
 */
export function mayMoveTags(grant: Grant, repository: string): boolean {
  return grant.for !== "build" || repository === names.repository(grant.namespace, grant.function);
}

function isBelow(repository: string, prefix: string): boolean {
  return repository.startsWith(`${prefix}/`);
}
