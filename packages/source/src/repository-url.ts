import { GitError } from "./git-error.ts";

/** A repository that may be asked for: over http(s) or ssh, and nothing else. */
export interface RepositoryUrl {
  transport: "http" | "ssh";
  /** As Git gets it. */
  url: string;
  /** Of http: scheme, host and port, which is what credentials are for. */
  origin: string;
  /** Lower case, without brackets and final dot. */
  host: string;
  port: number;
}

const userName = /^[\w.~+][\w.~+-]*$/;
const hostName = /^(?:[A-Za-z0-9](?:[\w.-]*)|\[[0-9A-Fa-f:.]+\])$/;
/** `git@host:path`, relative to the user's home; a `/` before the colon would make it a path. */
const scpAddress = /^([^@/:\s]+)@([^@/:\s]+):([^-:].*)$/;

/**
 * Reads `spec.source.gitRepository.url`. Git itself would take much more: paths of this machine,
 * and helpers that run commands.
 */
export function parseRepositoryUrl(text: string): RepositoryUrl {
  // oxlint-disable-next-line no-control-regex -- a line end in a URL is an attack
  if (text.length > 4096 || /[\s\u0000-\u001f\u007f\\]/.test(text)) throw refused("is not a URL");
  const scp = scpAddress.exec(text);
  if (scp && !text.includes("://")) {
    const [, user = "", host = ""] = scp;
    if (!userName.test(user) || !hostName.test(host)) throw refused("is not an SSH address");
    return { transport: "ssh", url: text, origin: "", host: plainHost(host), port: 22 };
  }
  if (!URL.canParse(text)) throw refused("is neither an https URL nor an SSH address");
  const url = new URL(text);
  if (url.password !== "") {
    throw refused("holds a password: put it into a Secret, and name that in auth.secretName");
  }
  if (url.protocol === "http:" || url.protocol === "https:") {
    const port = Number(url.port) || (url.protocol === "http:" ? 80 : 443);
    withoutFinalDot(url);
    const origin = `${url.protocol}//${url.host}`;
    return { transport: "http", url: url.href, origin, host: plainHost(url.hostname), port };
  }
  if (url.protocol !== "ssh:") {
    throw refused(`has the scheme ${url.protocol.slice(0, -1)}: use https or ssh`);
  }
  if (!hostName.test(url.hostname)) throw refused("has no valid host name");
  // The user is always git, unless the URL says otherwise.
  if (url.username === "") url.username = "git";
  if (!userName.test(url.username)) throw refused("has no valid user name");
  withoutFinalDot(url);
  const port = Number(url.port) || 22;
  return { transport: "ssh", url: url.href, origin: "", host: plainHost(url.hostname), port };
}

/** What an SSH address says besides its host and port: whose login it is, and the repository's path as Git asks for it. */
export function sshParts({ url }: RepositoryUrl): { user: string; path: string } {
  const scp = url.includes("://") ? null : scpAddress.exec(url);
  if (scp) return { user: scp[1] ?? "", path: scp[3] ?? "" };
  const { username, pathname } = new URL(url);
  return { user: username, path: pathname };
}

/** Git pins names to the addresses that were checked: `a.example.` would be another name to it, and be resolved again. */
function withoutFinalDot(url: URL): void {
  if (url.hostname.endsWith(".")) url.hostname = url.hostname.replace(/\.+$/, "");
}

function plainHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}

/** Without the URL itself: it may hold a password. */
function refused(why: string): GitError {
  return new GitError("unrecoverable", `source.gitRepository.url ${why}`);
}
