/**
 * What the Function Controller's build Job and the builder in its Pod agree on (docs/contributing/rooms/image.md). Both sides import it: a
 * difference is a type error, or does not exist.
 */
import { hash } from "node:crypto";

/** Directories of the Pod. Without a root file system of its own, the builder finds them below `SPRY_ROOT`. */
export const buildPaths = {
  /** The Function's files. */
  source: "/workspace/src",
  /** For temporary files; shared by the steps. */
  scratch: "/workspace/build",
  /** What a step leaves for the next one; the step with foreign code can only read it. */
  handover: "/workspace/handover",
  /** An `.npmrc`, a `pip.conf`. */
  packageRegistry: "/workspace/registry-config",
  /** `DOCKER_CONFIG` */
  credentials: "/docker",
} as const;

/** Programs of the builder's image. */
export const buildPrograms = {
  /** Starts the builder, unless an earlier step has pushed the image. */
  builder: "/opt/spry/builder.sh",
  /** The builder itself, for a build without earlier steps. */
  onlyStep: "/opt/spry/builder.cjs",
  fetcher: "/opt/spry/fetcher.cjs",
} as const;

/** Parts of a build that are containers of their own, in this order (docs/adr/0009-build-steps.md). */
export const buildSteps = ["fetch", "scripts", "push"] as const;
export type BuildStep = (typeof buildSteps)[number];

/** A variable with certificates (PEM) of an authority that every registry may have its certificate from. */
export const registryAuthorityVariable = "SPRY_REGISTRY_AUTHORITY";

/** The builder's flags, without dashes; each has a value. */
export type BuilderFlag =
  | "source"
  | "runtime"
  | "base"
  | "destination"
  | "dependency-cache"
  | "previous-image"
  | "source-digest"
  | "source-url"
  | "source-revision"
  /** An image with one layer of files, unpacked where the source is. */
  | "source-image"
  | "base-name"
  | "title"
  /** May be repeated. */
  | "plain-registry"
  | "registry-config"
  | "scratch"
  | "handover"
  | "step";

/** How the builder and the source fetcher end; the termination message is the reason. */
export const buildExitCodes = {
  done: 0,
  /** The Function's author has to change something: the same build would fail again. */
  refused: 1,
  /** Another attempt may succeed. */
  failed: 2,
} as const;

/** Of a termination message, which Kubernetes cuts at 4096 bytes. */
const maxSentences = 8;
/** As JSON, in which a character may take two bytes. */
const maxSentenceLength = 220;

/** The termination message of a build that has succeeded: the image's name by digest, and what of the source is not in it. */
export function builtMessage(image: string, leftOut: readonly string[] = []): string {
  if (leftOut.length === 0) return JSON.stringify({ image });
  const more = leftOut.length - maxSentences;
  const shown = leftOut
    .slice(0, maxSentences)
    .map((each) => each.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, maxSentenceLength));
  if (more > 0) shown.push(`and ${more} more, see the log of the build`);
  return JSON.stringify({ image, leftOut: shown });
}

/** The sentences in that message. */
export function leftOutInMessage(message: string): string[] {
  try {
    const { leftOut } = JSON.parse(message) as { leftOut?: unknown };
    return Array.isArray(leftOut) ? leftOut.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** The digest (`sha256:…`) in that message; undefined where it is another one. */
export function digestInMessage(message: string): string | undefined {
  try {
    const { image } = JSON.parse(message) as { image?: unknown };
    return /@(sha256:[0-9a-f]{64})$/.exec(typeof image === "string" ? image : "")?.[1];
  } catch {
    return undefined;
  }
}

/**
 * One digest for all files of an inline source: of what `sha256sum` prints for them in the order of their paths, so that
 * `sha256sum handler.js package.json | sha256sum` prints the same. The builder refuses to build anything else, because the
 * ConfigMap may have been edited between the Job and its Pod.
 */
export function sourceDigest(
  files: readonly { path: string; content: string | Uint8Array }[],
): `sha256:${string}` {
  const sha256 = (content: string | Uint8Array) => hash("sha256", content, "hex");
  const lines = files
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path, content }) => `${sha256(content)}  ${path}\n`);
  return `sha256:${sha256(lines.join(""))}`;
}
