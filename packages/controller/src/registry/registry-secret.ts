import { names } from "@spry/function";
import { type Secret } from "@spry/kube";

export interface Login {
  username: string;
  password: string;
}

/** Where the platform's own registry is, and who makes logins there. */
export interface RegistryAccess {
  /** Host (and port) that the builder pushes to. */
  pushAddress: string;
  /** Host in the names of images; nodes know where that is. */
  pullAddress: string;
  logins: RegistryLogins;
}

/** Each login is good for its purpose alone, and the same purpose gives the same one. */
export interface RegistryLogins {
  /** The repositories of a namespace: pull and push. */
  namespace(of: { namespace: string; uid: string }): Login;
  /** One build: its Function's repository and the namespace's dependency layers, while its Job runs. */
  build(of: {
    namespace: string;
    /** Of the namespace. */
    uid: string;
    function: string;
    job: { name: string; uid: string };
    /** Milliseconds since the epoch. */
    expiresAt: number;
    /** Repository to pull a base image from, if that is one of the namespace's own. */
    base?: string | undefined;
  }): Login;
}

/** The `auths` of a docker configuration, by registry. */
export type Auths = Record<string, object>;

/** Of a Secret of the type kubernetes.io/dockerconfigjson; undefined when it holds none. */
export function authsIn(secret: Secret | undefined): Auths | undefined {
  const text = Buffer.from(secret?.data?.[".dockerconfigjson"] ?? "", "base64").toString();
  try {
    const { auths } = JSON.parse(text) as { auths?: Auths };
    return typeof auths === "object" && auths !== null ? auths : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The Secret of a namespace (docs/compatibility.md#registry-secret), for the platform's registry; `others` are logins for further registries.
 */
export function internalRegistrySecret(
  { namespace, uid }: { namespace: string; uid: string },
  registry: RegistryAccess,
  others: Auths = {},
): Secret {
  const { pushAddress, pullAddress, logins } = registry;
  const login = logins.namespace({ namespace, uid });
  return secretOf(namespace, {
    ...login,
    isInternal: "true",
    pullRegAddr: pullAddress,
    pushRegAddr: pushAddress,
    ".dockerconfigjson": JSON.stringify({ auths: { ...others, ...authsOf(registry, login) } }),
  });
}

/** Who we are at the registry of our own, by whichever address. */
export function authsOf({ pushAddress, pullAddress }: RegistryAccess, login: Login): Auths {
  const auth = authOf(login.username, login.password);
  return { [pushAddress]: auth, [pullAddress]: auth };
}

/** What a namespace gets of the base namespace's Secret: for the registry of our own a login of its own. */
export function copyForNamespace(
  { type, data }: Secret,
  of: { namespace: string; uid: string },
  registry: RegistryAccess | undefined,
): Pick<Secret, "type" | "data"> {
  const isOwn =
    registry &&
    decoded(data, "isInternal") === "true" &&
    decoded(data, "pushRegAddr") === registry.pushAddress;
  const own =
    isOwn &&
    internalRegistrySecret(of, registry, authsIn({ metadata: {}, ...(data ? { data } : {}) }));
  return {
    ...(type ? { type } : {}),
    ...(data ? { data: { ...data, ...(own ? own.data : {}) } } : {}),
  };
}

function decoded(data: Secret["data"], key: string): string {
  return Buffer.from(data?.[key] ?? "", "base64").toString();
}

const required = ["registryAddress", "serverAddress"] as const;

/**
 * The same for a registry of the user's, from the Secret that the Serverless object names. Errors name what the
 * Secret lacks.
 */
export function externalRegistrySecret(
  namespace: string,
  given: Secret,
): { secret: Secret; address: string } | { error: string } {
  const value = (key: string) =>
    Buffer.from(given.data?.[key] ?? "", "base64")
      .toString()
      .trim();
  const missing = required.filter((key) => value(key) === "");
  if (missing.length > 0) {
    return { error: `Secret ${given.metadata.name} has no ${missing.join(" and no ")}` };
  }
  const username = value("username");
  const password = value("password");
  const registryAddress = value("registryAddress");
  const serverAddress = value("serverAddress");
  const auths: Record<string, { auth: string }> = {};
  if (username || password) auths[serverAddress] = authOf(username, password);
  const ca = value("ca.crt");
  const secret = secretOf(namespace, {
    username,
    password,
    isInternal: "false",
    registryAddress,
    serverAddress,
    ".dockerconfigjson": JSON.stringify({ auths }),
    // By which builders know a private authority.
    ...(ca && { "ca.crt": ca }),
  });
  return { secret, address: registryAddress };
}

function secretOf(namespace: string, values: Record<string, string>): Secret {
  return {
    metadata: {
      name: names.registrySecret,
      namespace,
      labels: { "serverless.kyma-project.io/config": "credentials" },
    },
    type: "kubernetes.io/dockerconfigjson",
    data: Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  };
}

function authOf(username: string, password: string): { auth: string } {
  return { auth: Buffer.from(`${username}:${password}`).toString("base64") };
}
