import { StatusError } from "@spry/kube";
import { type UserInfo } from "./engine.ts";
import { type RequestInfo } from "./http/request-info.ts";

const administrators = "system:masters";
/** What anybody with a certificate may read to find their way. */
const publicPaths = /^\/(?:version|healthz|livez|readyz|api|apis|openapi)(?:\/|$)/;

const verbs: Record<string, string> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Throws a `StatusError` 403 unless the user may do this. */
export function authorize(user: UserInfo, method: string, path: string, info: RequestInfo): void {
  if (user.groups.includes(administrators)) return;
  if (info.resource === undefined && method === "GET" && publicPaths.test(path)) return;
  const verb = verbs[method] ?? (info.name ? "get" : "list");
  const name = JSON.stringify(user.name);
  if (info.resource === undefined) {
    throw new StatusError({
      code: 403,
      message: `forbidden: User ${name} cannot ${verb} path ${JSON.stringify(path)}`,
      details: {},
    });
  }
  const { group = "", resource, namespace, name: object = "" } = info;
  const target = group ? `${resource}.${group}` : resource;
  const scope = namespace
    ? `in the namespace ${JSON.stringify(namespace)}`
    : "at the cluster scope";
  throw new StatusError({
    code: 403,
    message: `${target}${object && ` ${JSON.stringify(object)}`} is forbidden: User ${name} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${scope}`,
    details: { ...(object && { name: object }), ...(group && { group }), kind: resource },
  });
}
