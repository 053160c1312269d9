import { randomBytes } from "node:crypto";
import { type Pod, type ServiceAccount, type UnknownObject, type Volume } from "@spry/kube";
import { type ResourceRequest } from "../request.ts";
import { forbidden } from "../errors.ts";
import { type Store } from "../store/store.ts";

const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
const volumePrefix = "kube-api-access-";
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
/** An hour, and seven seconds by which others know the token of an injected volume. */
const expirationSeconds = 3607;
/** A new Namespace gets its ServiceAccount `default` a moment later. */
const waitForDefaultMs = 1_500;

/**
 * The admission plugin ServiceAccount: a new Pod gets its ServiceAccount's pull secrets and, unless Pod or
 * ServiceAccount opts out, a volume with a token, the API server's authority and the namespace. Throws a
 * `StatusError` 403 when the ServiceAccount does not exist.
 */
export async function admitServiceAccount(
  store: Store,
  { type, namespace, subresource }: ResourceRequest,
  object: UnknownObject,
): Promise<void> {
  if (type.collection !== "/pods" || subresource) return;
  const pod = object as unknown as Pod;
  const { spec, metadata } = pod;
  if (!spec) return;
  spec.serviceAccountName ||= spec.serviceAccount || "default";
  const name = spec.serviceAccountName;
  const account = await accountOf(store, namespace, name);
  if (!account) {
    throw forbidden(
      type,
      metadata.name ?? "",
      `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`,
    );
  }
  const wanted = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  if (wanted) mountToken(spec);
  if (!spec.imagePullSecrets?.length && account.imagePullSecrets?.length) {
    spec.imagePullSecrets = account.imagePullSecrets.map(({ name: secret = "" }) => ({
      name: secret,
    }));
  }
}

async function accountOf(
  store: Store,
  namespace: string,
  name: string,
): Promise<ServiceAccount | undefined> {
  const place = { collection: "/serviceaccounts", namespace, name };
  const find = () => store.get(place)?.object as unknown as ServiceAccount | undefined;
  const found = find();
  if (found || name !== "default") return found;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(end, waitForDefaultMs);
    const stop = store.watch(place.collection, store.revision, ({ current }) => {
      if (current.namespace === namespace && current.name === name) end();
    });
  });
  return find();
}

/** Containers that mount something at the path keep what they have. */
function mountToken(spec: NonNullable<Pod["spec"]>): void {
  const present = spec.volumes?.find(({ name }) => name.startsWith(volumePrefix))?.name;
  const name = present ?? volumePrefix + randomSuffix();
  const containers = (spec.containers as typeof spec.containers | undefined) ?? [];
  const without = [...(spec.initContainers ?? []), ...containers].filter(
    ({ volumeMounts }) => !volumeMounts?.some((mount) => mount.mountPath === mountPath),
  );
  for (const container of without) {
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name, readOnly: true, mountPath },
    ];
  }
  if (without.length === 0 || present) return;
  spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
}

function tokenVolume(name: string): Volume {
  const namespaceFile = {
    path: "namespace",
    fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" },
  };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        { downwardAPI: { items: [namespaceFile] } },
      ],
      defaultMode: 0o644,
    },
  };
}

function randomSuffix(): string {
  return Array.from(randomBytes(5), (byte) => alphabet[byte % alphabet.length]).join("");
}
