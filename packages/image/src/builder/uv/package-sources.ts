import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { NotForUv } from "./not-for-uv.ts";
import { type PipSettings } from "./pip-settings.ts";

/** Where packages come from. */
export interface PackageSources {
  /** Undefined for the one that both installers know. */
  index: string | undefined;
  extraIndexes: string[];
  noIndex: boolean;
  /** Directories with packages; pages are refused. */
  findLinks: string[];
  /** `host` or `host:port`, whose certificates and plain HTTP are accepted. */
  trustedHosts: string[];
}

/** Settings of pip that change nothing in what is installed. */
const harmless = new Set(
  (
    "break-system-packages cache-dir compile config-file disable-pip-version-check log no-cache-dir no-color no-compile no-input " +
    "no-python-version-warning no-warn-conflicts no-warn-script-location progress-bar quiet require-virtualenv retries " +
    "root-user-action verbose"
  ).split(" "),
);
const translated = new Set(
  "index-url extra-index-url no-index find-links trusted-host cert timeout default-timeout no-binary only-binary".split(
    " ",
  ),
);
const yes = /^(?:1|y|yes|t|true|on)$/i;

/** Throws `NotForUv` for a setting that uv has no equal of. */
export function sourcesOf(settings: PipSettings): PackageSources {
  for (const name of settings.keys())
    if (!harmless.has(name) && !translated.has(name))
      throw new NotForUv(`uv has no equivalent of pip's setting ${name}`);
  const list = (name: string) => settings.get(name)?.split(/\s+/).filter(Boolean) ?? [];
  return {
    index: settings.get("index-url"),
    extraIndexes: list("extra-index-url"),
    noIndex: yes.test(settings.get("no-index") ?? ""),
    findLinks: list("find-links"),
    trustedHosts: list("trusted-host"),
  };
}

/**
 * uv's environment for the same: variables, because there may be logins in URLs. Where a version is in several indexes, pip
 * takes that of the last one and uv that of the first. Throws `NotForUv` where pip would refuse a source.
 */
export function sourceVariables(sources: PackageSources): Record<string, string> {
  const { index, extraIndexes, findLinks, noIndex } = sources;
  for (const url of noIndex ? [] : [...(index ? [index] : []), ...extraIndexes])
    if (!isSecure(url, sources.trustedHosts))
      throw new NotForUv("an index is neither https nor trusted");
  for (const directory of findLinks)
    if (!isAbsolute(directory) || /[,\s]/.test(directory) || !isDirectory(directory))
      throw new NotForUv("find-links is more than a directory");
  const variables: Record<string, string> = {};
  if (findLinks.length > 0) variables["UV_FIND_LINKS"] = findLinks.join(",");
  if (noIndex) return variables;
  if (index) variables["UV_DEFAULT_INDEX"] = index;
  if (extraIndexes.length > 0) variables["UV_INDEX"] = extraIndexes.toReversed().join(" ");
  return variables;
}

/** As pip judges (`SECURE_ORIGINS`): uv would take packages from anywhere. */
function isSecure(text: string, trustedHosts: readonly string[]): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, host } = new URL(text);
  if (protocol === "https:") return true;
  const isLocal =
    hostname === "localhost" || hostname === "[::1]" || /^127\.[\d.]+$/.test(hostname);
  const isTrusted = trustedHosts.some((trusted) => trusted === hostname || trusted === host);
  return protocol === "http:" && (isLocal || isTrusted);
}

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory();
