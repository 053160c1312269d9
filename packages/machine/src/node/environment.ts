import {
  type ConfigMap,
  type Container,
  type EnvVar,
  isNotFound,
  type KubeClient,
  type Pod,
  quantityValue,
  resources,
  type Secret,
} from "@spry/kube";

import { type PodTokens } from "./pod-tokens.ts";

/** A container's configuration cannot be made up yet: shown as `CreateContainerConfigError`. */
export class ContainerConfigError extends Error {}

/** Reads ConfigMaps and Secrets of one Pod, each once per pass. */
export class PodObjects {
  readonly tokens: PodTokens;
  readonly #client: KubeClient;
  readonly #namespace: string | undefined;
  readonly #read = new Map<string, Promise<ConfigMap | Secret | undefined>>();

  constructor(client: KubeClient, namespace: string | undefined, tokens: PodTokens) {
    this.tokens = tokens;
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The entries as bytes; undefined when there is no such object. */
  async configMap(name: string): Promise<Map<string, Buffer> | undefined> {
    const object = (await this.#get("configMap", name)) as ConfigMap | undefined;
    if (!object) return undefined;
    return new Map([
      ...Object.entries(object.data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const),
      ...base64Entries(object.binaryData),
    ]);
  }

  async secret(name: string): Promise<Map<string, Buffer> | undefined> {
    const object = (await this.#get("secret", name)) as Secret | undefined;
    return object && new Map(base64Entries(object.data));
  }

  #get(kind: "configMap" | "secret", name: string): Promise<ConfigMap | Secret | undefined> {
    const key = `${kind}/${name}`;
    const target = { namespace: this.#namespace, name };
    const read =
      this.#read.get(key) ??
      (kind === "secret"
        ? this.#client.get<Secret>(resources.secrets, target)
        : this.#client.get<ConfigMap>(resources.configMaps, target)
      ).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
    this.#read.set(key, read);
    return read;
  }
}

function base64Entries(data: Record<string, string> | undefined) {
  return Object.entries(data ?? {}).map(
    ([key, text]) => [key, Buffer.from(text, "base64")] as const,
  );
}

/** The facts of a Pod's place that fields can refer to. */
export interface PodPlace {
  podIp: string;
  hostIp: string;
  nodeName: string;
  /** Cores and bytes: what a container without a limit may use. */
  allocatable: { cpu: number; memory: number };
  /** Where the Pod's containers reach the API server. */
  apiServer?: { host: string; port: number } | undefined;
}

/**
 * The environment that image and Pod say: the image's, where the API server is, then `envFrom`, then
 * `env` with `$(VAR)` expanded. Throws a `ContainerConfigError` that names what is missing.
 */
export async function environmentOf(
  pod: Pod,
  container: Container,
  imageEnv: readonly string[],
  objects: PodObjects,
  place: PodPlace,
): Promise<Record<string, string>> {
  const env = new Map<string, string>();
  for (const entry of imageEnv) {
    const at = entry.indexOf("=");
    if (at > 0) env.set(entry.slice(0, at), entry.slice(at + 1));
  }
  const declared = new Map(apiServerVariables(place));
  for (const source of container.envFrom ?? []) {
    const { configMapRef, secretRef, prefix = "" } = source;
    const reference = configMapRef ?? secretRef;
    if (!reference) continue;
    const kind = configMapRef ? "configmap" : "secret";
    const name = reference.name ?? "";
    const data = configMapRef ? await objects.configMap(name) : await objects.secret(name);
    if (!data && !reference.optional) throw new ContainerConfigError(`${kind} "${name}" not found`);
    for (const [key, value] of data ?? []) declared.set(prefix + key, value.toString());
  }
  for (const variable of container.env ?? []) {
    const value = await valueOf(pod, container, variable, objects, place, declared);
    if (value !== undefined) declared.set(variable.name, value);
  }
  return Object.fromEntries([...env, ...declared]);
}

/** By these, programs in a Pod know that they are in a cluster, and where its API is. */
function apiServerVariables({ apiServer }: PodPlace): [string, string][] {
  if (!apiServer) return [];
  const port = String(apiServer.port);
  return [
    ["KUBERNETES_SERVICE_HOST", apiServer.host],
    ["KUBERNETES_SERVICE_PORT", port],
    ["KUBERNETES_SERVICE_PORT_HTTPS", port],
  ];
}

async function valueOf(
  pod: Pod,
  container: Container,
  { value, valueFrom, name }: EnvVar,
  objects: PodObjects,
  place: PodPlace,
  declared: ReadonlyMap<string, string>,
): Promise<string | undefined> {
  if (!valueFrom) return expand(value ?? "", declared);
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = valueFrom;
  if (fieldRef) return fieldValue(pod, fieldRef.fieldPath, place);
  if (resourceFieldRef) return resourceValue(pod, container, resourceFieldRef, place);
  const reference = configMapKeyRef ?? secretKeyRef;
  if (!reference) throw new ContainerConfigError(`env ${name}: valueFrom has no source`);
  const kind = configMapKeyRef ? "configmap" : "secret";
  const source = reference.name ?? "";
  const data = configMapKeyRef ? await objects.configMap(source) : await objects.secret(source);
  const found = data?.get(reference.key);
  if (found) return found.toString();
  if (reference.optional) return undefined;
  if (!data) throw new ContainerConfigError(`${kind} "${source}" not found`);
  const namespace = pod.metadata.namespace;
  const where = kind === "secret" ? "Secret" : "ConfigMap";
  throw new ContainerConfigError(
    `couldn't find key ${reference.key} in ${where} ${namespace}/${source}`,
  );
}

/** `$(NAME)` of what was declared before; `$$(NAME)` is the text `$(NAME)`; others stay as they are. */
export function expand(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(/\$(\$|\(([^()]*)\))/g, (whole, dollarOr: string, name?: string) => {
    if (dollarOr === "$") return "$";
    return variables.get(name ?? "") ?? whole;
  });
}

/** A field by its path, as `env` and downward API volumes may refer to (`core/v1 ObjectFieldSelector`). */
export function fieldValue(pod: Pod, fieldPath: string, place: PodPlace): string {
  const { metadata, spec } = pod;
  const keyed = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(fieldPath);
  if (keyed) return metadata[keyed[1] as "labels" | "annotations"]?.[keyed[2] ?? ""] ?? "";
  const lines = (entries: Record<string, string> | undefined) =>
    Object.entries(entries ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      .join("\n");
  const fields: Record<string, () => string> = {
    "metadata.name": () => metadata.name ?? "",
    "metadata.namespace": () => metadata.namespace ?? "",
    "metadata.uid": () => metadata.uid ?? "",
    "metadata.labels": () => lines(metadata.labels),
    "metadata.annotations": () => lines(metadata.annotations),
    "spec.nodeName": () => place.nodeName,
    "spec.serviceAccountName": () => spec?.serviceAccountName ?? "default",
    "status.hostIP": () => place.hostIp,
    "status.hostIPs": () => place.hostIp,
    "status.podIP": () => place.podIp,
    "status.podIPs": () => place.podIp,
  };
  const field = fields[fieldPath];
  if (!field) throw new ContainerConfigError(`unsupported fieldPath: ${fieldPath}`);
  return field();
}

interface ResourceField {
  resource: string;
  containerName?: string;
  divisor?: string;
}

/** Limits and requests in units of the divisor, rounded up; without a limit, what the node has. */
export function resourceValue(
  pod: Pod,
  own: Container | undefined,
  { resource, containerName, divisor }: ResourceField,
  place: PodPlace,
): string {
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const container = containerName ? all.find(({ name }) => name === containerName) : own;
  if (!container) throw new ContainerConfigError(`container ${containerName} not found`);
  const [list = "", name = ""] = resource.split(".", 2);
  const { limits, requests } = container.resources ?? {};
  const given = list === "limits" ? limits?.[name] : requests?.[name];
  const whole =
    name === "cpu" ? place.allocatable.cpu : name === "memory" ? place.allocatable.memory : 0;
  const fallback = list === "limits" ? whole : (limits?.[name] ?? 0);
  const unit = divisor && divisor !== "0" ? quantityValue(divisor) : 1;
  return String(Math.ceil(quantityValue(given ?? String(fallback)) / unit));
}

/** Program and arguments: the Pod's `command` replaces the image's entrypoint and its arguments. */
export function argvOf(
  container: Container,
  image: { Entrypoint?: string[]; Cmd?: string[] },
  env: Record<string, string>,
): string[] {
  const variables = new Map(Object.entries(env));
  const { command, args } = container;
  const program = command?.length ? command : (image.Entrypoint ?? []);
  const rest = args?.length ? args : command?.length ? [] : (image.Cmd ?? []);
  const expanded = (list: readonly string[], own: boolean) =>
    own ? list.map((text) => expand(text, variables)) : list;
  const argv = [
    ...expanded(program, Boolean(command?.length)),
    ...expanded(rest, Boolean(args?.length)),
  ];
  if (argv.length === 0)
    throw new ContainerConfigError("no command specified: neither the Pod nor the image has one");
  return argv;
}
