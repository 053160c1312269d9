import { dump } from "js-yaml";
import { isNotFound, type KubeClient, type Resource, type UnknownObject } from "@spry/kube";
import { styleText } from "node:util";
import { applyObject } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { lineDiff } from "../line-diff.ts";
import { readManifests, resourceOf } from "../manifests.ts";
import { printableLines } from "../printable.ts";

export interface DiffOptions extends GlobalOptions {
  filename: string[];
  recursive?: boolean;
}

/** Prints what `spry apply` would change, as the server would store it. The exit code is 1 if that is anything. */
export async function diff(options: DiffOptions): Promise<void> {
  const manifests = readManifests(options.filename, { isRecursive: options.recursive ?? false });
  const { client, namespace } = await connect(options);
  let isDifferent = false;
  for (const manifest of manifests) {
    const resource = await resourceOf(client, manifest);
    const object = structuredClone(manifest.object);
    if (resource.namespaced) object.metadata.namespace ??= namespace;
    const before = await stored(client, resource, object);
    const after = await applyObject(client, resource, object, {
      dryRun: true,
      forceConflicts: true,
    });
    const lines = lineDiff(before ? shown(before) : "", shown(after));
    if (lines.length === 0) continue;
    isDifferent = true;
    console.log(`${object.kind.toLowerCase()}/${object.metadata.name}${before ? "" : " (new)"}`);
    for (const line of lines) console.log(`  ${coloured(printableLines(line))}`);
  }
  if (isDifferent) process.exitCode = 1;
  else console.error("no differences");
}

async function stored(
  client: KubeClient,
  resource: Resource<UnknownObject>,
  { metadata: { namespace, name = "" } }: UnknownObject,
): Promise<UnknownObject | undefined> {
  try {
    return await client.get(resource, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** What a user writes of an object; values of Secrets are not shown. */
function shown({ apiVersion, kind, metadata, status: _status, ...rest }: UnknownObject): string {
  const { name, namespace, labels, annotations } = metadata;
  const content: Record<string, unknown> = { ...rest };
  if (kind === "Secret")
    for (const part of ["data", "stringData"])
      if (content[part])
        content[part] = Object.fromEntries(
          Object.keys(content[part]).map((key) => [key, "(not shown)"]),
        );
  return dump(
    { apiVersion, kind, metadata: { name, namespace, labels, annotations }, ...content },
    { skipInvalid: true, sortKeys: false, lineWidth: -1 },
  );
}

function coloured(line: string): string {
  const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
  return styleText(style, line, { stream: process.stdout, validateStream: true });
}
