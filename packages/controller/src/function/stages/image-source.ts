/**
 * The source stage of a Function whose source is an image (docs/adr/0019-sources-as-images.md). The digest is the source; what is checked is that
 * the image is in the Function's own repository, because a registry's login may reach those of others.
 */
import { buildKey, deprecationOf, runtimeOf } from "@spry/function";
import { withWarnings } from "../conditions.ts";
import { activeRegistry, repositoriesIn, repositoryIn } from "../../registry/registry.ts";
import { type Deps, type Draft, type Outcome } from "../stage.ts";
import { dropConfigMap, forgetGitSource } from "./git-source.ts";

export async function resolveImageSource(draft: Draft, deps: Deps): Promise<Outcome> {
  const { fn, status, namespace, name } = draft;
  deps.commits.forget(draft.key);
  forgetGitSource(status);
  await dropConfigMap(draft, deps);
  const registry = activeRegistry(deps.caches, namespace);
  // Without one the build stage waits, and says for what.
  if (registry) {
    // Two Functions may have shared a former name: only images of this Function's own successful builds are accepted
    // from there, because a build key contains the digest but not the repository.
    const { build } = status;
    const isKnown = build?.image !== undefined && build.key === buildKey(fn);
    const own = [registry, ...registry.others].flatMap((each) =>
      (isKnown ? repositoriesIn(each, namespace, name) : [repositoryIn(each, namespace, name)]).map(
        (path) => `${each.pull}/${path}`,
      ),
    );
    const [repository = ""] = (fn.spec.source.image ?? "").split("@");
    if (!own.includes(repository)) {
      const message =
        `Stop reconciliation, reason: source image ${repository} is not in the Function's own repository ${own[0]}: ` +
        "deploy the directory with `spry deploy`";
      return { kind: "stop", reason: "SourceUpdateFailed", message };
    }
  }
  const message = withWarnings(`Sources ${name} updated`, [deprecationOf(runtimeOf(fn))]);
  return { kind: "done", reason: "SourceUpdated", message };
}
