import { labels } from "@spry/function";
import { deepEqual, type Secret } from "@spry/kube";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allow,
  allowPatched,
  refuse,
} from "@spry/kube";

/** The label that makes a Secret the choice of a registry. */
export const remoteRegistryLabel = { [labels.remoteRegistry]: "config" };

const required = ["username", "password", "serverAddress", "registryAddress"] as const;
const dockerConfigKey = ".dockerconfigjson";
const dockerConfigType = "kubernetes.io/dockerconfigjson";

/**
 * The defaulting webhook for Secrets that choose a registry (docs/compatibility.md#registry-secret-webhook). From user,
 * password and server it generates the docker configuration with which builders push and nodes pull; one that is
 * already correct is left unchanged.
 */
export function completeRegistrySecret(request: AdmissionRequest): AdmissionResponse {
  const { object, oldObject, operation } = request;
  if ((operation !== "CREATE" && operation !== "UPDATE") || !isSecret(object)) return allow();
  const { metadata } = object;
  if (metadata.deletionTimestamp || metadata.labels?.[labels.remoteRegistry] !== "config")
    return allow();
  const missing = required.filter((key) => valueOf(object, key) === undefined);
  if (missing.length > 0) {
    // What is stored may stay: labels and finalizers must work on it.
    if (isSecret(oldObject) && deepEqual(oldObject.data, object.data)) return allow();
    return refuse(
      request,
      missing.map((key) => ({
        reason: "FieldValueRequired",
        field: `data[${key}]`,
        message: `a Secret with the label ${labels.remoteRegistry}=config needs it`,
      })),
    );
  }
  const warnings =
    object.type === dockerConfigType
      ? []
      : [`type: nodes pull only with Secrets of the type ${dockerConfigType}`];
  const [username = "", password = "", server = ""] = required.map((key) => valueOf(object, key));
  const auth = encode(`${username}:${password}`);
  if (authFor(server, valueOf(object, dockerConfigKey)) === auth) return allow(warnings);
  const value = encode(JSON.stringify({ auths: { [server]: { auth } } }));
  const operations = object.data
    ? [{ op: "add" as const, path: `/data/${dockerConfigKey}`, value }]
    : [{ op: "add" as const, path: "/data", value: { [dockerConfigKey]: value } }];
  return { ...allowPatched(operations), ...(warnings.length > 0 ? { warnings } : {}) };
}

/** Of a key; undefined when there is nothing. An API server may not have made `data` of `stringData` yet. */
function valueOf({ data, stringData }: Secret, key: string): string | undefined {
  const value = stringData?.[key] ?? Buffer.from(data?.[key] ?? "", "base64").toString();
  return value.trim() === "" ? undefined : value;
}

function authFor(server: string, config: string | undefined): string | undefined {
  try {
    const { auths } = JSON.parse(config ?? "{}") as { auths?: Record<string, { auth?: string }> };
    return auths?.[server]?.auth;
  } catch {
    return undefined;
  }
}

const encode = (text: string): string => Buffer.from(text).toString("base64");

function isSecret(object: unknown): object is Secret {
  const { metadata, data = {}, stringData = {} } = (object ?? {}) as Partial<Secret>;
  return [metadata, data, stringData].every((each) => typeof each === "object" && each !== null);
}
