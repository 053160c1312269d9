/** What a push says: to which repository, by all the URLs it has, and to which of its names. */
export interface PushEvent {
  urls: string[];
  /** `refs/heads/main`; undefined where the sender does not say. */
  ref: string | undefined;
}

const maxUrls = 20;

/**
 * Reads the body of a push: GitHub's, Gitea's (`repository.clone_url`, …), GitLab's (`project.git_http_url`, …), Bitbucket's
 * (`repository.links.html.href`), or plainly `{"repository": "<URL>", "ref": "refs/heads/main"}`.
 * Undefined when it is none of these.
 */
export function readPushEvent(text: string): PushEvent | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { repository, project, ref } = fieldsOf(body);
  const urls = [repository, ...valuesOf(repository), ...valuesOf(project), htmlLink(repository)]
    .filter(
      (value): value is string => typeof value === "string" && locationOf(value) !== undefined,
    )
    .slice(0, maxUrls);
  if (urls.length === 0) return undefined;
  return { urls, ref: typeof ref === "string" ? ref : undefined };
}

/** Whether a Function's URL and reference are what was pushed to. */
export function concerns(event: PushEvent, source: { url: string; reference: string }): boolean {
  const location = locationOf(source.url);
  if (location === undefined || !event.urls.some((url) => locationOf(url) === location))
    return false;
  const { reference } = source;
  if (event.ref === undefined || reference === "HEAD") return true;
  return [reference, `refs/heads/${reference}`, `refs/tags/${reference}`].includes(event.ref);
}

/** `host/path`: what `https://user@host/path.git`, `ssh://git@host:22/path` and `git@host:path` have in common. */
function locationOf(url: string): string | undefined {
  if (url.length > 4096) return undefined;
  const [, scpHost, scpPath] = /^[^@/:\s]+@([^@/:\s]+):([^-:].*)$/.exec(url) ?? [];
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isServer = parsed && ["http:", "https:", "ssh:", "git:"].includes(parsed.protocol);
  const host = scpHost ?? (isServer ? hostOf(parsed) : undefined);
  const path = scpHost ? scpPath : parsed?.pathname;
  if (!host || path === undefined) return undefined;
  return `${host.toLowerCase()}/${path.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "")}`;
}

/** A port belongs to a web server's name; ssh has another port at the same server. */
function hostOf(url: URL): string {
  return url.protocol.startsWith("http") ? url.host : url.hostname;
}

function htmlLink(repository: unknown): unknown {
  return fieldsOf(fieldsOf(fieldsOf(repository)["links"])["html"])["href"];
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
}

const valuesOf = (value: unknown): unknown[] => {
  const fields = fieldsOf(value);
  const names = ["clone_url", "ssh_url", "git_url", "html_url", "url", "web_url", "homepage"];
  return [...names, "git_http_url", "git_ssh_url", "git_http_url"].map((name) => fields[name]);
};
