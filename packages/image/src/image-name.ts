import { type Digest, parseDigest } from "./digest.ts";

/** An image name taken apart: `host/repository[:tag][@digest]`. */
export interface ImageName {
  /** Host and port of the registry as written; `docker.io` when the name has none. */
  host: string;
  repository: string;
  tag?: string;
  digest?: Digest;
}

/** Grammar of the OCI distribution specification 1.1, "Pulling manifests". */
const repositoryPattern =
  /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const hostPattern =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$/;

export function isRepository(text: string): boolean {
  // The length comes first: the pattern is only tried on short texts.
  return text.length <= 255 && repositoryPattern.test(text);
}

export function isTag(text: string): boolean {
  return tagPattern.test(text);
}

/** Reads an image name; without tag and digest it means the tag `latest`, as everywhere. */
export function parseImageName(text: string): ImageName {
  const fail = (why: string) => new Error(`reading image name ${JSON.stringify(text)}: ${why}`);
  if (text.length > 512) throw new Error("reading image name: longer than 512 characters");
  const [beforeDigest = "", digestText, ...more] = text.split("@");
  if (more.length > 0) throw fail("more than one @");
  const colon = beforeDigest.indexOf(":", beforeDigest.lastIndexOf("/") + 1);
  const path = colon < 0 ? beforeDigest : beforeDigest.slice(0, colon);
  const tag = colon < 0 ? undefined : beforeDigest.slice(colon + 1);
  const slash = path.indexOf("/");
  const first = slash < 0 ? "" : path.slice(0, slash);
  // Docker's rule: the first part is a host when it looks like one.
  const hasHost = /[.:]/.test(first) || first === "localhost";
  const host = hasHost ? first : "docker.io";
  let repository = hasHost ? path.slice(slash + 1) : path;
  if (!hasHost && slash < 0) repository = `library/${repository}`;
  if (!hostPattern.test(host)) throw fail(`${host} is not a valid registry host`);
  if (!isRepository(repository))
    throw fail(
      "a repository name consists of lower case letters, digits, and . _ - / between them",
    );
  if (tag !== undefined && !isTag(tag)) throw fail(`${JSON.stringify(tag)} is not a valid tag`);
  const name: ImageName = { host, repository };
  if (digestText !== undefined) name.digest = parseDigest(digestText);
  if (tag !== undefined) name.tag = tag;
  else if (digestText === undefined) name.tag = "latest";
  return name;
}

export function formatImageName(name: ImageName): string {
  const tag = name.tag === undefined ? "" : `:${name.tag}`;
  const digest = name.digest === undefined ? "" : `@${name.digest}`;
  return `${name.host}/${name.repository}${tag}${digest}`;
}

/** Hosts that can only be this machine: spoken to without TLS. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/:\d+$/, "");
  return (
    name === "localhost" ||
    name.endsWith(".localhost") ||
    /^127(\.\d+){3}$/.test(name) ||
    name === "[::1]"
  );
}
