import { type Base } from "./base.ts";
import { type BuildOptions } from "./build-options.ts";

/** By the names that the OCI image specification has for them ("Pre-Defined Annotation Keys"). */
export function imageLabels({ title, origin = {} }: BuildOptions): Record<string, string> {
  const { url, revision, created } = origin;
  return {
    ...(title ? { "org.opencontainers.image.title": title } : {}),
    ...(url ? { "org.opencontainers.image.source": url } : {}),
    ...(revision ? { "org.opencontainers.image.revision": revision } : {}),
    ...(created ? { "org.opencontainers.image.created": created } : {}),
  };
}

/** A name that only this machine knows does not belong in an image's labels. */
export function baseAnnotations(base: Base, { baseName }: BuildOptions): Record<string, string> {
  return {
    "org.opencontainers.image.base.digest": base.digest,
    ...(baseName ? { "org.opencontainers.image.base.name": baseName } : {}),
  };
}
