import { names } from "@spry/function";
import { type Secret } from "@spry/kube";

/** Whom a registry lets in, and where it is. */
export interface RegistryAccess {
  /** Host (and port) that the builder pushes to. */
  pushAddress: string;
  /** Host in the names of images; nodes know where that is. */
  pullAddress: string;
  username: string;
  password: string;
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
 * The Secret that every namespace gets (docs/compatibility.md#registry-secret), for the platform's registry; `others`
 * are logins for further registries.
 */
export function internalRegistrySecret(
  namespace: string,
  registry: RegistryAccess,
  others: Auths = {},
): Secret {
  const { username, password, pushAddress, pullAddress } = registry;
  const auth = authOf(username, password);
  return secretOf(namespace, {
    username,
    password,
    isInternal: "true",
    pullRegAddr: pullAddress,
    pushRegAddr: pushAddress,
    ".dockerconfigjson": JSON.stringify({
      auths: { ...others, [pushAddress]: auth, [pullAddress]: auth },
    }),
  });
}

const required = ["registryAddress", "serverAddress"] as const;

/** The same for somebody else's, from the Secret that the Serverless object names. Errors name what that lacks. */
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
