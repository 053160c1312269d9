import { functionRevisions, functions, names } from "@spry/function";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { type ControllerConfig } from "../../config.ts";

/** What a registry must keep, as it names things itself: without its own address. */
export interface ImagesInUse {
  /** `<repository>@<digest>` and `<repository>:<tag>` of everything that may be started or built from. */
  references: string[];
  /** The repositories of all Functions that there are. */
  functions: string[];
}

const apps = (kind: string, plural: string): Resource => ({
  group: "apps",
  version: "v1",
  kind,
  plural,
  namespaced: true,
});

/** What builds start from. */
export type PlatformImages = Pick<
  ControllerConfig,
  "runtimeImages" | "builderImage" | "builderImages"
>;

/** Every kind that starts Pods, or says from what they are started. Who asks needs the right to list each. */
export const kindsWithImages: Resource[] = [
  resources.pods,
  resources.deployments,
  resources.replicaSets,
  resources.jobs,
  resources.cronJobs,
  apps("StatefulSet", "statefulsets"),
  apps("DaemonSet", "daemonsets"),
  // What a Function may return to.
  functionRevisions,
  functions,
];

/**
 * All images that anything in the cluster refers to, in any namespace, whatever it is: Functions and the
 * builds that they may come back to, revisions, Pods, Jobs; and what the next builds start from. Throws when
 * any list cannot be had: from half a picture nothing may be removed.
 */
export async function imagesInUse(
  client: KubeClient,
  { runtimeImages, builderImage, builderImages = {} }: PlatformImages,
  signal?: AbortSignal,
): Promise<ImagesInUse> {
  const images = new Set<string>([builderImage]);
  for (const image of [...Object.values(runtimeImages), ...Object.values(builderImages)])
    images.add(image);
  const repositories: string[] = [];
  // One kind at a time: nothing waits for this, and other clients use the API server, too.
  for (const kind of kindsWithImages) {
    for await (const object of everyOne(client, kind, signal)) {
      collectImages(object, images);
      const { namespace = "", name = "" } = object.metadata;
      if (kind === functions) repositories.push(names.repository(namespace, name));
    }
  }
  return { references: [...images].flatMap(referencesOf), functions: repositories };
}

/** Who uses what, namespace by namespace: for a registry whose repositories are to get the names of today. */
export async function imageUses(client: KubeClient): Promise<{
  functions: { namespace: string; name: string }[];
  references: { namespace: string; reference: string }[];
}> {
  const owners: { namespace: string; name: string }[] = [];
  const images = new Map<string, Set<string>>();
  for (const kind of kindsWithImages) {
    for await (const object of everyOne(client, kind, undefined)) {
      const { namespace = "", name = "" } = object.metadata;
      const used = images.get(namespace) ?? new Set();
      images.set(namespace, used);
      collectImages(object, used);
      if (kind === functions) owners.push({ namespace, name });
    }
  }
  const references = [...images].flatMap(([namespace, used]) =>
    [...used].flatMap(referencesOf).map((reference) => ({ namespace, reference })),
  );
  return { functions: owners, references };
}

async function* everyOne(
  client: KubeClient,
  kind: Resource,
  signal: AbortSignal | undefined,
): AsyncGenerator<KubeObject> {
  try {
    for await (const { items } of client.pages(kind, signal ? { signal } : {})) yield* items;
  } catch (error) {
    // A kind that the API server does not have has no objects.
    if (!isNotFound(error)) throw error;
  }
}

/** Members that hold the name of an image, wherever they are: in Pods, templates, Functions and their status. */
const imageMembers = new Set([
  "image",
  "imageID",
  "runtimeImage",
  "runtimeImageOverride",
  // Of an image volume.
  "reference",
]);

function collectImages(value: unknown, images: Set<string>): void {
  if (value === null || typeof value !== "object") return;
  for (const [member, content] of Object.entries(value)) {
    if (typeof content !== "string") collectImages(content, images);
    else if (imageMembers.has(member)) images.add(content);
    // A finished build says so what it has made; its Function may come back to it.
    else if (member === "message")
      for (const [, image = ""] of content.matchAll(built)) images.add(image);
  }
}

const built = /"image":\s*"([^"]+)"/g;

/** An image's name as the registry knows it: the address in front, and how it was found, do not count. */
function referencesOf(image: string): string[] {
  const [name = "", digest] = image.replace(/^[a-z-]+:\/\//, "").split("@");
  const slash = name.indexOf("/");
  const host = name.slice(0, Math.max(0, slash));
  const path = /[.:]|^localhost$/.test(host) ? name.slice(slash + 1) : name;
  const colon = path.lastIndexOf(":");
  const repository = colon < 0 ? path : path.slice(0, colon);
  const tag = colon < 0 ? "latest" : path.slice(colon + 1);
  return digest ? [`${repository}@${digest}`] : [`${repository}:${tag}`];
}
