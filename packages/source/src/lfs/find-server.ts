/** Where the LFS API of a repository is, and the login for it (git-lfs, "Server Discovery"). */
import { type CheckedOut, type Completion } from "../complete-source.ts";
import { type GitCredentials } from "../credentials.ts";
import { parseRepositoryUrl, type RepositoryUrl, sshParts } from "../repository-url.ts";
import { credentialsFor, isSameServer } from "../submodule-url.ts";
import { headersIn, LfsRefusal, type LfsServer } from "./lfs-server.ts";

interface SshLogin {
  /** Of the API; without it, the API is where it is by default. */
  href: string | undefined;
  headers: Record<string, string>;
}

const loginMs = 30_000;
const maxAnswerBytes = 64 * 1024;
/** The path is sent without quotes, as git-lfs does: servers do not expect any, and another path could be a command. */
const plainPath = /^[\w.~/+@-]+$/;

/** Throws an `LfsRefusal` for an API that must not be asked. */
export async function findServer(part: CheckedOut, { request }: Completion): Promise<LfsServer> {
  const { repository } = part;
  const configured = await configuredUrl(part);
  const named = configured === "" ? repository : parsed(configured);
  if (named.transport === "ssh" && !isSameServer(named, repository))
    throw new LfsRefusal("its URL is an SSH address of another server");
  const login =
    named.transport === "ssh" ? await loginBySsh(part, named, request.signal) : undefined;
  const isDefault = configured === "" || named.transport === "ssh";
  const target = parsed(login?.href ?? (isDefault ? apiOf(named) : named.url));
  const { allowed, environment, services, signal } = request;
  return {
    url: target.url,
    headers: login?.headers ?? authorization(credentialsFor(target, request)),
    options: {
      allowed,
      environment,
      services,
      signal,
      mayBePlain: repository.url.startsWith("http:"),
    },
  };
}

/** `lfs.url` of the commit's `.lfsconfig`; empty without one. */
async function configuredUrl({ git, commit }: CheckedOut): Promise<string> {
  const args = ["config", "--blob", `${commit}:.lfsconfig`, "--get", "lfs.url"];
  return (await git(args).catch(() => "")).trim();
}

function parsed(url: string): RepositoryUrl {
  try {
    return parseRepositoryUrl(url);
  } catch (error) {
    throw new LfsRefusal((error as Error).message.replace("source.gitRepository.url", "its URL"));
  }
}

/** Where the API is by default. Of an SSH address, on the same host by https. */
function apiOf(repository: RepositoryUrl): string {
  const { transport, url, host } = repository;
  const address =
    transport === "http"
      ? url
      : `https://${host.includes(":") ? `[${host}]` : host}/${sshParts(repository).path.replace(/^\/+/, "")}`;
  const plain = address.replace(/\/+$/, "");
  return `${plain.endsWith(".git") ? plain : `${plain}.git`}/info/lfs`;
}

/**
 * Asks the SSH server for a login at the API, with the key that has fetched the repository. Undefined for a server that gives none: many
 * do not know the command, and their API may be open.
 */
async function loginBySsh(
  { session }: CheckedOut,
  repository: RepositoryUrl,
  signal: AbortSignal | undefined,
): Promise<SshLogin | undefined> {
  const { user, path } = sshParts(repository);
  if (!plainPath.test(path)) return undefined;
  const { host, port } = repository;
  const command = `git-lfs-authenticate ${path} download`;
  try {
    const bounds = { timeoutMs: loginMs, maxOutputBytes: maxAnswerBytes, signal };
    return loginIn(await session.runRemotely({ user, host, port, command }, bounds));
  } catch (error) {
    if (signal?.aborted) throw error;
    return undefined;
  }
}

function loginIn(answer: string): SshLogin {
  const { href, header } = JSON.parse(answer) as { href?: unknown; header?: unknown };
  const isUrl = typeof href === "string" && href !== "";
  return { href: isUrl ? href : undefined, headers: headersIn(header) };
}

function authorization(credentials: GitCredentials | undefined): Record<string, string> {
  if (credentials?.type !== "basic") return {};
  const { username, password } = credentials;
  const login = Buffer.from(`${username}:${password}`).toString("base64");
  return { authorization: `Basic ${login}` };
}
