import { createHash } from "node:crypto";
import { dependenciesOf } from "./dependencies.ts";
import { annotations } from "./labels.ts";
import { runtimeOf } from "./runtimes.ts";
import { type Function } from "./types.ts";
import { packageSpec, undeclaredOf } from "./undeclared-packages.ts";

/**
 * What determines a Function's image, as 64 hex digits: code, dependencies and runtime (or the
 * image that replaces it), and the packages that the build adds, as far as they can be read from the object; of a Git
 * source its commit and folder, of an image its digest; and what asks for a build of its own, if anything does. Neither the
 * Function's identity nor the base image's digest is part of it: a Function that comes back finds its
 * image, and a new base image alone rebuilds nothing.
 */
export function buildKey(fn: Function, commit?: string): string {
  const { inline, gitRepository, image } = fn.spec.source;
  const runtime = fn.spec.runtimeImageOverride || runtimeOf(fn).name;
  const language = runtimeOf(fn).language;
  // Of an image its content counts, and not where it is.
  const digest = image?.split("@")[1];
  const ofImage = digest === undefined ? undefined : ["image", digest, language, runtime];
  const inputs = inline
    ? ["inline", inline.source, dependenciesOf(fn), language, runtime]
    : (ofImage ?? ["git", commit ?? "", gitRepository?.baseDir ?? "", language, runtime]);
  const undeclared = undeclaredOf(fn);
  if (undeclared.length > 0) inputs.push(undeclared.map(packageSpec).join(" "));
  const demand = fn.metadata.annotations?.[annotations.rebuild];
  if (demand) inputs.push(demand);
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}
