/** The settings that a program in a cluster gets from its Pod: the Deployment's environment variables. */
import { registryAuthorityVariable } from "@spry/function";
import { UserError } from "../user-error.ts";

export interface ControllerEnvironment {
  /** Where it runs, and where the base objects are. */
  namespace: string;
  /** Its Pod: who it is among the candidates for leadership. */
  identity: string;
  /** By the names of `npm run images`: `controller`, `builder`, `nodejs24`, ... Each by digest. */
  images: Readonly<Record<string, string>>;
  /** Secrets in the namespace by which these are pulled. */
  imagePullSecrets: readonly string[];
  /** Registries that are spoken to without TLS. */
  plainRegistries: readonly string[];
  /** Certificates (PEM) of an authority that registries may have theirs from; empty for none but the public ones. */
  registryAuthority: string;
  /** Whether events are served: Subscriptions, their definition and the publisher's Service. */
  eventing: boolean;
  /** Environment variables of builds. */
  buildEnvironment: Readonly<Record<string, string>>;
  registry: {
    /** The registry's Service within the cluster, `host:port`. */
    pushAddress: string;
    /** The same as nodes reach it. */
    pullAddress: string;
  };
}

/** Throws a `UserError` that names the variable which is missing or wrong. */
export function controllerEnvironment(env: NodeJS.ProcessEnv): ControllerEnvironment {
  return {
    namespace: textIn(env, "POD_NAMESPACE"),
    identity: textIn(env, "POD_NAME"),
    images: mapIn(env, "SPRY_IMAGES"),
    imagePullSecrets: listIn(env, "SPRY_IMAGE_PULL_SECRETS"),
    plainRegistries: listIn(env, "SPRY_PLAIN_REGISTRIES"),
    registryAuthority: env[registryAuthorityVariable] ?? "",
    eventing: env["SPRY_EVENTING"] === "true",
    buildEnvironment: mapIn(env, "SPRY_BUILD_ENVIRONMENT"),
    registry: {
      pushAddress: textIn(env, "SPRY_REGISTRY_PUSH_ADDRESS"),
      pullAddress: textIn(env, "SPRY_REGISTRY_PULL_ADDRESS"),
    },
  };
}

/** A variable that must be there. */
export function textIn(
  env: NodeJS.ProcessEnv,
  name: string,
  wayOut = "the Deployment sets it",
): string {
  const value = env[name];
  if (value) return value;
  throw new UserError(`the environment variable ${name} is not set`, wayOut);
}

function listIn(env: NodeJS.ProcessEnv, name: string): string[] {
  return (env[name] ?? "").split(",").filter(Boolean);
}

/** A JSON object of texts; nothing is an empty one. */
export function mapIn(env: NodeJS.ProcessEnv, name: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(env[name] || "{}");
    if (isTextMap(value)) return value;
  } catch {
    // Said below.
  }
  throw new UserError(`${name} must be a JSON object with string values`, "the Deployment sets it");
}

function isTextMap(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === "string");
}
