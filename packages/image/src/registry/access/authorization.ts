import { type Exchange } from "../exchange.ts";
import { RegistryFailure } from "../registry-failure.ts";
import { type Route } from "../routes.ts";
import { type Action, allows, type Grant } from "./grants.ts";

/**
 * The route, with the repository's name of today. Throws `DENIED` when the grant of the request does not cover what it asks for. It
 * is the first thing that is looked at, so that the answer is the same whether there is such a repository or not.
 */
export function authorized(
  { request: { method }, grant, stores }: Exchange,
  route: Route | undefined,
): Route | undefined {
  if (!route || !("repository" in route)) return route;
  const action = actionOf(route, method);
  const repository =
    action === "pull" ? stores.aliases.resolve(route.repository, grant) : route.repository;
  if (allows(grant, action, repository)) return { ...route, repository };
  throw new RegistryFailure("DENIED", `${whoIs(grant)} may not ${action} ${repository}`);
}

function actionOf({ kind }: Route, method = ""): Action {
  // Also the end of an upload that was begun: nothing that is stored goes.
  if (kind === "upload" || kind === "uploads") return "push";
  if (method === "GET" || method === "HEAD") return "pull";
  return method === "DELETE" ? "delete" : "push";
}

function whoIs(grant: Grant): string {
  switch (grant.for) {
    case "namespace":
      return `the login of namespace ${grant.namespace}`;
    case "build":
      return `the build of ${grant.namespace}/${grant.function}`;
    default:
      return `the login of the ${grant.for}`;
  }
}
