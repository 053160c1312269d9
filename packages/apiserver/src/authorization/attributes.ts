import { parseFieldSelector } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { type RequestInfo } from "../http/request-info.ts";

/** What one user wants to do: the input of an authorizer's decision. */
export type Attributes = ResourceAttributes | PathAttributes;

export interface ResourceAttributes {
  user: UserInfo;
  /** As RBAC names it: `get`, `list`, `watch`, `create`, ..., or one of its own (`bind`, `impersonate`). */
  verb: string;
  group: string;
  resource: string;
  /** Empty for the resource itself. */
  subresource: string;
  /** Empty for the whole cluster. */
  namespace: string;
  /** Empty where no single object is meant. */
  name: string;
}

/** Paths that are of no resource: `/version`, `/openapi/v3`, ... */
export interface PathAttributes {
  user: UserInfo;
  verb: string;
  path: string;
}

const verbs: Record<string, string> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** What a request wants to do (apiserver's `RequestInfoFactory`). */
export function attributesOf(
  user: UserInfo,
  method: string,
  url: URL,
  info: RequestInfo,
): Attributes {
  if (info.resource === undefined) {
    return { user, verb: method.toLowerCase(), path: url.pathname };
  }
  const { group = "", resource, subresource = "", namespace = "", name = "" } = info;
  const verb = verbs[method] ?? method.toLowerCase();
  const about = { user, group, resource, subresource };
  // A Namespace is in itself, so that its own administrators can see it.
  const within = resource === "namespaces" && group === "" && name ? name : namespace;
  const watches = info.watch === true || isWatch(url);
  if (name) {
    return {
      ...about,
      verb: watches && verb === "get" ? "watch" : verb,
      namespace: within,
      name,
    };
  }
  if (verb === "get") {
    const of = nameInSelector(url);
    return { ...about, verb: watches ? "watch" : "list", namespace, name: of };
  }
  return { ...about, verb: verb === "delete" ? "deletecollection" : verb, namespace, name };
}

function isWatch(url: URL): boolean {
  return ["true", "1"].includes(url.searchParams.get("watch") ?? "");
}

/** A list of the one object of a name is allowed to whom that name is. */
function nameInSelector(url: URL): string {
  try {
    const requirements = parseFieldSelector(url.searchParams.get("fieldSelector") ?? "");
    const named = requirements.find(
      ({ field, operator }) => field === "metadata.name" && operator === "=",
    );
    return named && !named.value.includes("/") ? named.value : "";
  } catch {
    return "";
  }
}
