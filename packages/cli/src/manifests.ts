/** Reads manifests (YAML or JSON, several documents, lists) and finds out where their kinds live. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import {
  isNotFound,
  type KubeClient,
  loadAllYaml,
  type Resource,
  type UnknownObject,
} from "@spry/kube";
import {
  isKymaConfig,
  kymaTexts,
  objectsOfKymaConfig,
  type ReadContext,
} from "./kyma/config-yaml.ts";
import { configName } from "./project/schema.ts";
import { spryCommand } from "./shown-command.ts";
import { successorOf } from "./retired-versions.ts";
import { decodeText, readText } from "./text-file.ts";
import { UserError } from "./user-error.ts";
import { withWrittenTexts } from "./written-texts.ts";

export interface Manifest {
  object: UnknownObject & { apiVersion: string; kind: string };
  /** Where it came from, for messages. */
  origin: string;
  /** Of a config.yaml: the name of its Function, and whether this is one of the objects that belong to it. */
  config?: { name: string; isChild: boolean };
}

export interface ReadOptions {
  isRecursive?: boolean;
  /** Of what a config.yaml describes that names none. */
  namespace?: () => string;
}

const maxEntries = 10_000;
const maxFileSize = 10 * 1024 * 1024;

/** All objects of files, directories and standard input (`-`). Throws a UserError that names the file. */
export function readManifests(
  filenames: readonly string[],
  { isRecursive = false, namespace = () => "default" }: ReadOptions = {},
): Manifest[] {
  const manifests = filenames
    .flatMap((name) => filesOf(name, isRecursive))
    .flatMap((file) => parse(file, { text: read(file), namespace }));
  if (manifests.length === 0)
    throw new UserError(
      `nothing to do: ${filenames.join(", ")} contains no object`,
      "a directory is deployed with spry deploy DIR; -R also reads the folders of -f DIR",
    );
  return manifests;
}

function filesOf(filename: string, isRecursive: boolean): string[] {
  if (filename === "-") return ["-"];
  const stat = statSync(filename, { throwIfNoEntry: false });
  if (!stat)
    throw new UserError(
      `the path ${filename} does not exist`,
      "name a file or a directory with -f",
    );
  if (!stat.isDirectory()) return [filename];
  const names = readdirSync(filename, { recursive: isRecursive, encoding: "utf8" });
  if (names.length > maxEntries)
    throw new UserError(`${filename} has more than ${maxEntries} entries`, "name the files");
  return names
    .filter((name) => /\.(ya?ml|json)$/.test(name) && !/(?:^|\/)node_modules\//.test(name))
    .sort()
    .map((name) => path.join(filename, name));
}

function read(file: string): string {
  if (file === "-") return decodeText(readFileSync(0), "standard input");
  return readText(file, file, maxFileSize);
}

function parse(file: string, context: ReadContext & { text: string }): Manifest[] {
  let documents: unknown[];
  try {
    documents = loadAllYaml(context.text);
    if (documents.some(isKymaConfig))
      documents = withWrittenTexts(documents, context.text, kymaTexts);
  } catch (error) {
    throw new UserError(`${file} is not valid YAML: ${(error as Error).message}`);
  }
  const given = documents
    .filter((document) => document != null)
    .flatMap((document) => {
      const items = (document as { kind?: string; items?: unknown[] }).items;
      return Array.isArray(items) ? items : [document];
    });
  const manifests: Manifest[] = [];
  for (const document of given) {
    const isConfig = isKymaConfig(document);
    const objects = isConfig ? objectsOfKymaConfig(document, file, context) : [document];
    for (const [index, object] of objects.entries()) {
      const at = manifests.length === 0 ? file : `${file}, object ${manifests.length + 1}`;
      const manifest = check(object, at);
      const isChild = isConfig && index > 0;
      if (isConfig) manifest.config = { name: document.name, isChild };
      manifests.push(manifest);
    }
  }
  return manifests;
}

function check(document: unknown, origin: string): Manifest {
  const object = document as Partial<Manifest["object"]>;
  if (typeof document !== "object" || !object.apiVersion || !object.kind) {
    const file = path.basename(origin);
    throw new UserError(
      `${origin}: an object needs apiVersion and kind`,
      file === configName
        ? `it is the configuration of a directory: \`${spryCommand(`deploy ${path.dirname(origin)}`)}\``
        : "a config.yaml of Kyma needs source.sourceType",
    );
  }
  if (!object.metadata?.name) throw new UserError(`${origin}: metadata.name is missing`);
  const infinite = pathOfInfinite(document);
  if (infinite !== undefined)
    throw new UserError(`${origin}: ${infinite} is .inf or .nan, which an object cannot have`);
  return { object: object as Manifest["object"], origin };
}

/** JSON has no such numbers. */
function pathOfInfinite(value: unknown, path = ""): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : path;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, each] of Object.entries(value)) {
    const found = pathOfInfinite(each, path === "" ? key : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Asks the server where the kind lives (discovery). */
export async function resourceOf(
  client: KubeClient,
  manifest: Manifest,
): Promise<Resource<UnknownObject>> {
  const { apiVersion, kind } = manifest.object;
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const path = group ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  let list: { resources?: { name: string; kind: string; namespaced: boolean }[] };
  try {
    list = (await (await client.raw("GET", path)).json()) as typeof list;
  } catch (error) {
    throw isNotFound(error) ? await unknownKind(client, manifest) : error;
  }
  const found = list.resources?.find((one) => one.kind === kind && !one.name.includes("/"));
  if (!found) throw await unknownKind(client, manifest);
  return {
    group: group ?? "",
    version: version ?? "",
    kind,
    plural: found.name,
    namespaced: found.namespaced,
  };
}

/** Names the versions in which the cluster has the kind, if it has it at all. */
async function unknownKind(client: KubeClient, { object, origin }: Manifest): Promise<UserError> {
  const { apiVersion, kind } = object;
  const [group = ""] = apiVersion.split("/");
  const others = apiVersion.includes("/") ? await versionsWith(client, group, kind) : [];
  const isElsewhere = others.length > 0;
  return new UserError(
    `${origin}: the cluster does not serve ${kind} in ${apiVersion}` +
      (isElsewhere ? `; it does in ${others.join(", ")}` : ""),
    successorOf(apiVersion, kind) ??
      (isElsewhere
        ? `write apiVersion: ${others[0]}, and check the fields: \`kubectl explain ${kind.toLowerCase()}.spec\``
        : "check apiVersion and kind, and that the kind's CustomResourceDefinition is installed"),
  );
}

/** `group/version` of those that have the kind, the preferred one first. */
async function versionsWith(client: KubeClient, group: string, kind: string): Promise<string[]> {
  const read = async <T>(path: string): Promise<T | undefined> => {
    try {
      return (await (await client.raw("GET", path)).json()) as T;
    } catch {
      // The message is about another failure.
      return undefined;
    }
  };
  const found = await read<{ versions?: { groupVersion: string }[] }>(`/apis/${group}`);
  const all = (found?.versions ?? []).slice(0, 10).map(async ({ groupVersion }) => {
    const list = await read<{ resources?: { kind: string }[] }>(`/apis/${groupVersion}`);
    return list?.resources?.some((one) => one.kind === kind) ? groupVersion : [];
  });
  return (await Promise.all(all)).flat();
}
