/** One request of a case. `$ns` stands for the case's namespace; `{{2.metadata.uid}}` for a value of the answer to step 2. */
export interface Step {
  method: string;
  path: string;
  /** Sent as JSON, a string as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  /** For watches: how many lines are awaited. */
  lines?: number;
  /** Sent again until the answer has this status: what is defined is served a moment later. */
  until?: number;
  /** Sent again until the answer holds this text: what a real server has not heard of yet is not there for it. */
  untilText?: string;
  /** What a real server needs to hear of its own writes. */
  settleMs?: number;
}

/** Requests that build on each other, replayed in order in a namespace of their own. */
export interface Case {
  name: string;
  steps: Step[];
}

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

/** The path of a resource in the case's namespace: `at("apps/v1", "deployments")`. */
export function at(groupVersion: string, rest: string): string {
  return `${rootOf(groupVersion)}/namespaces/$ns/${rest}`;
}

export function rootOf(groupVersion: string): string {
  return groupVersion.includes("/") ? `/apis/${groupVersion}` : `/api/${groupVersion}`;
}

export const get = (path: string, headers: Record<string, string> = {}): Step => ({
  method: "GET",
  path,
  headers,
});
export const post = (path: string, body: unknown): Step => ({ method: "POST", path, body });
export const put = (path: string, body: unknown): Step => ({ method: "PUT", path, body });
export const remove = (path: string, body?: unknown): Step => ({
  method: "DELETE",
  path,
  ...(body !== undefined && { body }),
});
export const patch = (type: keyof typeof patchTypes, path: string, body: unknown): Step => ({
  method: "PATCH",
  path,
  body,
  headers: { "content-type": patchTypes[type] },
});
/** Server-side apply as this manager. */
export const apply = (manager: string, path: string, body: unknown, query = ""): Step =>
  patch("apply", `${path}?fieldManager=${manager}${query}`, body);
export const watch = (path: string, lines: number): Step => ({ method: "GET", path, lines });
export const table = (path: string): Step =>
  get(path, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" });
