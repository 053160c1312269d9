import { type KubeClient } from "./client.ts";
import { isNotFound } from "./errors.ts";
import { type Pod, resources, type Secret } from "./resources.ts";

export interface PullCredentials {
  /** Names of Secrets that do not exist, or hold no credentials. */
  missing: string[];
  find(host: string, repository: string): { username: string; password: string } | undefined;
}

interface Entry {
  host: string;
  path: string;
  username: string;
  password: string;
}

type Auths = Record<string, { auth?: string; username?: string; password?: string }>;

/**
 * The Pod's `imagePullSecrets`, or those of its ServiceAccount where it names none; undefined when
 * there are none at all. Types `kubernetes.io/dockerconfigjson` and `kubernetes.io/dockercfg`.
 */
export async function pullCredentials(
  client: KubeClient,
  { metadata, spec }: Pick<Pod, "metadata" | "spec">,
): Promise<PullCredentials | undefined> {
  const { namespace = "" } = metadata;
  const own = spec?.imagePullSecrets ?? [];
  const account = { namespace, name: spec?.serviceAccountName || "default" };
  const references =
    own.length > 0
      ? own
      : ((await found(client.get(resources.serviceAccounts, account)))?.imagePullSecrets ?? []);
  const names = references.flatMap(({ name }) => name ?? []);
  if (names.length === 0) return undefined;
  const entries: Entry[] = [];
  const missing: string[] = [];
  for (const name of names) {
    const secret = await found(client.get<Secret>(resources.secrets, { namespace, name }));
    const read = secret && entriesOf(secret);
    if (read) entries.push(...read);
    else missing.push(name);
  }
  // The most exact one counts, as in the kubelet's keyring (`pkg/credentialprovider/keyring.go`).
  entries.sort((a, b) => b.path.length - a.path.length);
  const find = (host: string, repository: string) =>
    entries.find((entry) => matchesHost(entry.host, host) && matchesPath(entry.path, repository));
  return { missing, find };
}

async function found<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Undefined for a Secret that is none of registry credentials. Its content never reaches an error. */
function entriesOf({ data = {} }: Secret): Entry[] | undefined {
  try {
    const text = (key: string) => Buffer.from(data[key] ?? "", "base64").toString();
    const auths = data[".dockerconfigjson"]
      ? (JSON.parse(text(".dockerconfigjson")) as { auths?: Auths }).auths
      : (JSON.parse(text(".dockercfg")) as Auths);
    return Object.entries(auths ?? {}).flatMap(([key, { auth = "", username, password }]) => {
      const decoded = Buffer.from(auth, "base64").toString();
      const colon = decoded.indexOf(":");
      const user = username ?? (colon < 0 ? "" : decoded.slice(0, colon));
      if (user === "") return [];
      const [host = "", ...path] = key
        .replace(/^https?:\/\//, "")
        .replace(/\/(v1|v2)?\/?$/, "")
        .split("/");
      const entry = { username: user, password: password ?? decoded.slice(colon + 1) };
      return { ...entry, host: dockerHub.has(host) ? "docker.io" : host, path: path.join("/") };
    });
  } catch {
    return undefined;
  }
}

const dockerHub = new Set(["index.docker.io", "registry-1.docker.io", "docker.io"]);

/** Each label may have `*` in it; ports are compared as they are. */
function matchesHost(pattern: string, host: string): boolean {
  if (pattern === host) return true;
  if (!pattern.includes("*")) return false;
  const patterns = pattern.split(".");
  const labels = host.split(".");
  return (
    patterns.length === labels.length &&
    patterns.every((each, i) => {
      const parts = each.split("*").map((part) => part.replace(/[.\\^$+?()[\]{}|]/g, "\\$&"));
      return new RegExp(`^${parts.join("[^.]*")}$`).test(labels[i] ?? "");
    })
  );
}

function matchesPath(path: string, repository: string): boolean {
  return path === "" || repository === path || repository.startsWith(`${path}/`);
}
