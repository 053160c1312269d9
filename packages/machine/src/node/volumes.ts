import { chmod, chown, mkdir } from "node:fs/promises";
import path from "node:path";
import { type Container, type Pod, StatusError, type Volume } from "@spry/kube";
import { LeadsOut, makeBeneath } from "../sandbox/open-beneath.ts";
import { type Mount } from "../sandbox/sandbox.ts";
import { type Files, writeAtomicDirectory } from "./atomic-directory.ts";
import {
  ContainerConfigError,
  fieldValue,
  type PodObjects,
  type PodPlace,
  resourceValue,
} from "./environment.ts";

import { type TokenProjection } from "./pod-tokens.ts";

/** A volume cannot be set up (yet): the Pod waits, and an Event `FailedMount` says why. */
export class VolumeError extends Error {}

type FileMap = Map<string, { content: Buffer; mode: number }>;
interface Item {
  key: string;
  path: string;
  mode?: number;
}

const defaultMode = 0o644;

export const volumeDir = (podDir: string, name: string): string =>
  path.join(podDir, "volumes", name);

/** Writes all volumes of a Pod; on a running Pod it brings them up to date. */
export async function writeVolumes(
  pod: Pod,
  podDir: string,
  objects: PodObjects,
  place: PodPlace,
  owner?: { uid: number; gid: number },
): Promise<void> {
  // Only root can give files away; without it there is one user anyway.
  const group = process.getuid?.() === 0 ? pod.spec?.securityContext?.fsGroup : undefined;
  for (const volume of pod.spec?.volumes ?? []) {
    const dir = volumeDir(podDir, volume.name);
    try {
      if (volume.emptyDir) await makeEmptyDirectory(dir, group);
      else
        await writeAtomicDirectory(dir, await filesOf(pod, volume, objects, place), {
          uid: owner?.uid,
          gid: group ?? owner?.gid,
          isShared: group !== undefined,
        });
    } catch (error) {
      if (!(error instanceof VolumeError || error instanceof ContainerConfigError)) throw error;
      throw new VolumeError(
        `MountVolume.SetUp failed for volume "${volume.name}" : ${error.message}`,
      );
    }
  }
}

/** Open to every user of the Pod's containers, as the kubelet makes them, whatever the umask is. */
async function makeEmptyDirectory(dir: string, group: number | undefined): Promise<void> {
  const made = await mkdir(dir, { recursive: true });
  if (made === undefined) return;
  if (group !== undefined) await chown(dir, 0, group);
  await chmod(dir, group === undefined ? 0o777 : 0o2777);
}

async function filesOf(
  pod: Pod,
  volume: Volume,
  objects: PodObjects,
  place: PodPlace,
): Promise<Files> {
  const { configMap, secret, projected, downwardAPI } = volume;
  if (configMap) {
    const { name = "", items, optional, defaultMode } = configMap;
    return configMapFiles(name, { items, optional, defaultMode }, objects);
  }
  if (secret) {
    const { secretName = "", items, optional, defaultMode } = secret;
    return secretFiles(secretName, { items, optional, defaultMode }, objects);
  }
  if (downwardAPI)
    return downwardFiles(pod, downwardAPI.items ?? [], downwardAPI.defaultMode, place);
  if (projected) {
    const files: FileMap = new Map();
    for (const source of projected.sources ?? [])
      for (const [name, file] of await projectedFiles(
        pod,
        source,
        projected.defaultMode,
        objects,
        place,
      ))
        files.set(name, file);
    return files;
  }
  const type = Object.keys(volume).find((key) => key !== "name") ?? "none";
  throw new VolumeError(
    `volumes of type ${type} are not supported by this node; use configMap, secret, emptyDir, projected or downwardAPI`,
  );
}

type ProjectedSource = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

async function projectedFiles(
  pod: Pod,
  source: ProjectedSource,
  defaultMode: number | undefined,
  objects: PodObjects,
  place: PodPlace,
): Promise<Files> {
  const { configMap, secret, downwardAPI, serviceAccountToken } = source;
  if (serviceAccountToken) return tokenFile(serviceAccountToken, defaultMode, objects);
  if (configMap)
    return configMapFiles(configMap.name ?? "", { ...configMap, defaultMode }, objects);
  if (secret) return secretFiles(secret.name ?? "", { ...secret, defaultMode }, objects);
  if (downwardAPI) return downwardFiles(pod, downwardAPI.items ?? [], defaultMode, place);
  throw new VolumeError(
    `projected sources of type ${Object.keys(source)[0]} are not supported by this node`,
  );
}

async function tokenFile(
  projection: TokenProjection & { path: string },
  mode: number = defaultMode,
  { tokens }: PodObjects,
): Promise<Files> {
  try {
    const content = Buffer.from(await tokens.token(projection));
    return new Map([[checkedPath(projection.path), { content, mode }]]);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw new VolumeError(`failed to fetch token: ${error.message}`);
  }
}

interface Projection {
  items?: Item[] | undefined;
  optional?: boolean | undefined;
  defaultMode?: number | undefined;
}

async function configMapFiles(name: string, projection: Projection, objects: PodObjects) {
  return entryFiles("configmap", name, await objects.configMap(name), projection);
}

async function secretFiles(name: string, projection: Projection, objects: PodObjects) {
  return entryFiles("secret", name, await objects.secret(name), projection);
}

function entryFiles(
  kind: string,
  name: string,
  data: ReadonlyMap<string, Buffer> | undefined,
  { items, optional, defaultMode: mode = defaultMode }: Projection,
): Files {
  const files: FileMap = new Map();
  if (!data) {
    if (optional) return files;
    throw new VolumeError(`${kind} "${name}" not found`);
  }
  if (!items) {
    for (const [key, content] of data) files.set(checkedPath(key), { content, mode });
    return files;
  }
  for (const item of items) {
    const content = data.get(item.key);
    if (content) files.set(checkedPath(item.path), { content, mode: item.mode ?? mode });
    else if (!optional) throw new VolumeError(`references non-existent ${kind} key: ${item.key}`);
  }
  return files;
}

type DownwardItem = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>[number];

function downwardFiles(
  pod: Pod,
  items: readonly DownwardItem[],
  mode: number | undefined,
  place: PodPlace,
): Files {
  const files: FileMap = new Map();
  for (const { path: name, fieldRef, resourceFieldRef, mode: own } of items) {
    const text = fieldRef
      ? fieldValue(pod, fieldRef.fieldPath, place)
      : resourceFieldRef
        ? resourceValue(pod, undefined, resourceFieldRef, place)
        : "";
    files.set(checkedPath(name), { content: Buffer.from(text), mode: own ?? mode ?? defaultMode });
  }
  return files;
}

/** Keys and item paths come from outside: they stay below the volume, and off its inner files. */
function checkedPath(name: string): string {
  const parts = name.split("/");
  if (
    name.includes("\0") ||
    parts.some((part) => part === "" || part === "." || part.startsWith(".."))
  )
    throw new VolumeError(`invalid path ${JSON.stringify(name)}`);
  return name;
}

/** Where the container's mounts are on this machine. All but empty directories are read-only. */
export function mountsOf(
  container: Container,
  volumes: readonly Volume[],
  podDir: string,
  env: ReadonlyMap<string, string>,
  expand: (text: string, variables: ReadonlyMap<string, string>) => string,
): Mount[] {
  const mounts: Mount[] = [];
  for (const mount of container.volumeMounts ?? []) {
    const { name, mountPath, subPath, subPathExpr } = mount;
    const below = subPathExpr ? expand(subPathExpr, env) : (subPath ?? "");
    const dir = volumeDir(podDir, name);
    const source = path.join(dir, below);
    if (below.startsWith("/") || below.split("/").includes(".."))
      throw new ContainerConfigError(
        `subPath ${JSON.stringify(below)} must stay within the volume`,
      );
    // Missing directories of a subPath are made, as kubelet does; a file is there already.
    if (below) makeWithin(dir, below);
    const isEmptyDir = volumes.some((volume) => volume.name === name && volume.emptyDir);
    mounts.push({ mountPath, source, readOnly: Boolean(mount.readOnly) || !isEmptyDir });
  }
  return mounts;
}

/** A container that writes to the volume may have put links there that lead elsewhere. */
function makeWithin(dir: string, below: string): void {
  try {
    makeBeneath(dir, below);
  } catch (error) {
    if (!(error instanceof LeadsOut)) throw error;
    throw new ContainerConfigError(
      `subPath ${JSON.stringify(below)} leads out of the volume: ${error.message}`,
    );
  }
}

/** Whether a Pod's volumes or environment come from this object. */
export function podRefersTo(pod: Pod, kind: "configMap" | "secret", name: string): boolean {
  const { volumes = [], initContainers = [], containers = [] } = pod.spec ?? {};
  const inVolumes = volumes.some(({ configMap, secret, projected }) =>
    kind === "configMap"
      ? configMap?.name === name ||
        projected?.sources?.some((each) => each.configMap?.name === name)
      : secret?.secretName === name ||
        projected?.sources?.some((each) => each.secret?.name === name),
  );
  if (inVolumes) return true;
  return [...initContainers, ...containers].some(
    ({ env = [], envFrom = [] }) =>
      env.some(
        ({ valueFrom }) =>
          valueFrom?.[kind === "configMap" ? "configMapKeyRef" : "secretKeyRef"]?.name === name,
      ) ||
      envFrom.some(
        (source) => source[kind === "configMap" ? "configMapRef" : "secretRef"]?.name === name,
      ),
  );
}
