import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { load } from "js-yaml";

/** How to reach an API server, and as whom: one context of a kubeconfig, its files already read. */
export interface ClusterConfig {
  /** `https://host:port`, possibly with a path; `http:` for a proxy such as `kubectl proxy`. */
  server: string;
  /** The context's name; a Pod's own has none. */
  context?: string;
  /** The context's namespace; `default` when it names none. */
  namespace: string;
  /** PEM. Without it the certificates that Node trusts count. */
  certificateAuthority?: string;
  /** The name the server's certificate must carry when it is not the URL's host. */
  tlsServerName?: string;
  insecureSkipTlsVerify?: boolean;
  /** PEM, both or none. */
  clientCertificate?: string;
  clientKey?: string;
  token?: string;
  /** Read again while running: service account tokens are rotated. Goes before `token`. */
  tokenFile?: string;
  username?: string;
  password?: string;
  exec?: ExecConfig;
  /** What other programs noted about the cluster (`clusters[].cluster.extensions`), by name. */
  extensions?: Record<string, unknown>;
  impersonate?: { user: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
}

/** A credential plugin (client-go's `ExecConfig`). */
export interface ExecConfig {
  apiVersion: "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1";
  command: string;
  args: string[];
  env: Record<string, string>;
  provideClusterInfo: boolean;
  interactiveMode: "Never" | "IfAvailable" | "Always";
  installHint?: string;
  /** Directory of the kubeconfig that names the plugin: a command with a slash is relative to it. */
  directory: string;
}

export interface LoadOptions {
  /** Instead of the file's current context. */
  context?: string;
  env?: NodeJS.ProcessEnv;
  /** Where a Pod finds its credentials; for tests. */
  serviceAccountDir?: string;
}

type Fields = Record<string, unknown>;

/** A named entry together with the file it came from, against which its paths are resolved. */
interface Entry {
  fields: Fields;
  directory: string;
}

interface Merged {
  currentContext?: string;
  clusters: Map<string, Entry>;
  users: Map<string, Entry>;
  contexts: Map<string, Entry>;
}

const maxFileBytes = 4 * 1024 * 1024;
const defaultServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The configuration to reach a cluster with, found like kubectl finds it: the given file, else the
 * files listed in `KUBECONFIG`, else `~/.kube/config`, else the service account of the Pod we are in.
 */
export function loadKubeconfig(path?: string, options: LoadOptions = {}): ClusterConfig {
  const env = options.env ?? process.env;
  if (path !== undefined) return contextOf(merge([path]), options.context);
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter((each) => each !== "");
  if (listed.length > 0) {
    // As with kubectl, files of the list that do not exist are passed over.
    const present = listed.filter((each) => existsSync(each));
    if (present.length === 0) {
      throw new Error(`reading kubeconfig: no file of KUBECONFIG=${env.KUBECONFIG} exists`);
    }
    return contextOf(merge(present), options.context);
  }
  const home = join(env.HOME || homedir(), ".kube", "config");
  if (existsSync(home)) return contextOf(merge([home]), options.context);
  const serviceAccountDir = options.serviceAccountDir ?? defaultServiceAccountDir;
  if (env.KUBERNETES_SERVICE_HOST) return inClusterConfig(env, serviceAccountDir);
  throw new Error(
    `no cluster found: ${home} does not exist, KUBECONFIG is not set, and this is not a Pod; ` +
      `specify a kubeconfig file`,
  );
}

/** What every Pod is given: the API server's address and its service account's token. */
function inClusterConfig(env: NodeJS.ProcessEnv, directory: string): ClusterConfig {
  const host = env.KUBERNETES_SERVICE_HOST ?? "";
  const port = env.KUBERNETES_SERVICE_PORT ?? "443";
  const namespaceFile = join(directory, "namespace");
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: existsSync(namespaceFile) ? readBounded(namespaceFile).trim() : "default",
    certificateAuthority: readBounded(join(directory, "ca.crt")),
    tokenFile: join(directory, "token"),
  };
}

/** Several files merged into one: the first file that names something defines it. */
function merge(paths: string[]): Merged {
  const merged: Merged = { clusters: new Map(), users: new Map(), contexts: new Map() };
  for (const path of paths) {
    const file = parse(path);
    const directory = dirname(resolve(path));
    const current = file["current-context"];
    if (typeof current === "string" && current !== "") merged.currentContext ??= current;
    for (const [list, inner] of [
      ["clusters", "cluster"],
      ["users", "user"],
      ["contexts", "context"],
    ] as const) {
      for (const entry of Array.isArray(file[list]) ? (file[list] as Fields[]) : []) {
        const name = entry?.name;
        if (typeof name !== "string" || merged[list].has(name)) continue;
        merged[list].set(name, { fields: (entry[inner] ?? {}) as Fields, directory });
      }
    }
  }
  return merged;
}

function parse(path: string): Fields {
  let value: unknown;
  try {
    value = load(readBounded(path));
  } catch (cause) {
    throw new Error(`reading kubeconfig ${path}`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`reading kubeconfig ${path}: it does not contain an object of kind Config`);
  }
  return value as Fields;
}

function contextOf(merged: Merged, wanted: string | undefined): ClusterConfig {
  const name = wanted ?? merged.currentContext;
  if (!name)
    throw new Error("reading kubeconfig: it has no current-context, and no context was specified");
  const context = merged.contexts.get(name);
  if (!context)
    throw new Error(`reading kubeconfig: context ${JSON.stringify(name)} does not exist`);
  const cluster = merged.clusters.get(text(context.fields, "cluster") ?? "");
  if (!cluster)
    throw new Error(`reading kubeconfig: the cluster of context ${name} does not exist`);
  const userName = text(context.fields, "user");
  const user = userName === undefined ? undefined : merged.users.get(userName);
  if (userName && !user) throw new Error(`reading kubeconfig: user ${userName} does not exist`);
  return {
    context: name,
    namespace: text(context.fields, "namespace") ?? "default",
    ...clusterFields(cluster),
    ...(user ? userFields(user, userName ?? "") : {}),
  };
}

function extensionsOf(fields: Fields): Record<string, unknown> | undefined {
  const list = fields["extensions"];
  if (!Array.isArray(list)) return undefined;
  const named = (list as Fields[]).filter((entry) => typeof entry?.["name"] === "string");
  return Object.fromEntries(named.map((entry) => [entry["name"], entry["extension"]]));
}

function clusterFields(entry: Entry): Pick<ClusterConfig, "server"> & Partial<ClusterConfig> {
  const server = text(entry.fields, "server");
  if (!server || !/^https?:\/\//.test(server) || !URL.canParse(server)) {
    throw new Error("reading kubeconfig: the cluster's server must be an http or https URL");
  }
  if (entry.fields["proxy-url"]) {
    throw new Error(
      "reading kubeconfig: the cluster has a proxy-url, which is not supported; " +
        "use a server address that can be reached directly",
    );
  }
  const insecure = entry.fields["insecure-skip-tls-verify"] === true;
  return defined({
    server: server.replace(/\/+$/, ""),
    extensions: extensionsOf(entry.fields),
    certificateAuthority: pem(entry, "certificate-authority"),
    tlsServerName: text(entry.fields, "tls-server-name"),
    insecureSkipTlsVerify: insecure || undefined,
  });
}

function userFields(entry: Entry, name: string): Partial<ClusterConfig> {
  const { fields, directory } = entry;
  if (fields["auth-provider"]) {
    throw new Error(
      `reading kubeconfig: user ${name} has an auth-provider, which Kubernetes removed in 1.26; ` +
        `use an exec plugin`,
    );
  }
  const clientCertificate = pem(entry, "client-certificate");
  const clientKey = pem(entry, "client-key");
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new Error(`reading kubeconfig: user ${name} needs both a client-certificate and its key`);
  }
  const tokenFile = text(fields, "tokenFile");
  const exec = fields.exec as Fields | undefined;
  return defined({
    clientCertificate,
    clientKey,
    token: text(fields, "token"),
    tokenFile: tokenFile && resolve(directory, tokenFile),
    username: text(fields, "username"),
    password: text(fields, "password"),
    exec: exec ? execConfig(exec, directory, name) : undefined,
    impersonate: impersonation(fields),
  });
}

function impersonation(fields: Fields): ClusterConfig["impersonate"] {
  const user = text(fields, "as");
  if (!user) return undefined;
  return defined({
    user,
    uid: text(fields, "as-uid"),
    groups: fields["as-groups"] as string[] | undefined,
    extra: fields["as-user-extra"] as Record<string, string[]> | undefined,
  });
}

function execConfig(exec: Fields, directory: string, user: string): ExecConfig {
  const command = text(exec, "command");
  const apiVersion = text(exec, "apiVersion");
  if (!command)
    throw new Error(`reading kubeconfig: the exec plugin of user ${user} has no command`);
  if (
    apiVersion !== "client.authentication.k8s.io/v1" &&
    apiVersion !== "client.authentication.k8s.io/v1beta1"
  ) {
    throw new Error(
      `reading kubeconfig: the exec plugin of user ${user} has ${apiVersion ? `apiVersion ${apiVersion}` : "no apiVersion"}; ` +
        `it must be client.authentication.k8s.io/v1 or v1beta1`,
    );
  }
  const variables = (exec.env ?? []) as { name: string; value: string }[];
  return defined({
    apiVersion,
    command,
    args: ((exec.args ?? []) as unknown[]).map(String),
    env: Object.fromEntries(variables.map(({ name, value }) => [name, value])),
    provideClusterInfo: exec.provideClusterInfo === true,
    interactiveMode: (text(exec, "interactiveMode") ??
      "IfAvailable") as ExecConfig["interactiveMode"],
    installHint: text(exec, "installHint"),
    directory,
  });
}

/** `<name>-data` (base64) goes before the file that `<name>` names. */
function pem(entry: Entry, name: string): string | undefined {
  const data = text(entry.fields, `${name}-data`);
  if (data) return Buffer.from(data, "base64").toString("utf8");
  const file = text(entry.fields, name);
  return file === undefined ? undefined : readBounded(resolve(entry.directory, file));
}

function text(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  return value === undefined || value === null || value === "" ? undefined : String(value);
}

function readBounded(path: string): string {
  const { size } = statSync(path);
  if (size > maxFileBytes) throw new Error(`reading ${path}: larger than ${maxFileBytes} bytes`);
  return readFileSync(path, "utf8");
}

/** Without the keys that are undefined; their types lose it as well. */
function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
