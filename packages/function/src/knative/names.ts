import { createHash } from "node:crypto";

/** The longest label (RFC 1123). */
const longest = 63;
const digestLength = 32;
const head = longest - digestLength;

/**
 * The name of a child, as Knative forms it: `<parent><suffix>`; what is too long is cut, and an MD5 digest keeps it
 * unique (`knative.dev/pkg/kmeta.ChildName`).
 */
export function knativeChildName(parent: string, suffix: string): string {
  if (parent.length <= longest - suffix.length) return parent + suffix;
  if (head - suffix.length <= 0) {
    const name = parent.slice(0, head) + md5(parent + suffix);
    return validName(name + suffix.slice(0, Math.max(0, longest - name.length)));
  }
  return validName(parent.slice(0, head - suffix.length) + md5(parent)) + suffix;
}

export const knativeNames = {
  /** `hello-00001`: that of the Configuration's generation. */
  revision: (configuration: string, generation: number) =>
    knativeChildName(configuration, `-${String(generation).padStart(5, "0")}`),
  deployment: (revision: string) => knativeChildName(revision, "-deployment"),
  /** Selects the Revision's Pods; what the gateway routes to. */
  privateService: (revision: string) => knativeChildName(revision, "-private"),
  /** The name of a tag's Service, and the first label of its host. */
  tagged: (tag: string, route: string) => knativeChildName(`${tag}-${route}`, ""),
} as const;

function md5(text: string): string {
  return createHash("md5").update(text).digest("hex");
}

/** A name ends in a letter or a digit. */
function validName(name: string): string {
  return name.replace(/[^a-z0-9]+$/, "");
}
