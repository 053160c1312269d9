import { dump } from "js-yaml";
import { isNotFound, type KubeClient, type Resource, type UnknownObject } from "@spry/kube";
import { createHmac, randomBytes } from "node:crypto";
import { styleText } from "node:util";
import { applyObject } from "../apply-object.ts";
import { connect, type GlobalOptions, readOptions } from "../connection.ts";
import { lineDiff } from "../line-diff.ts";
import { readManifests, resourceOf } from "../manifests.ts";
import { printableLines } from "../printable.ts";

export interface DiffOptions extends GlobalOptions {
  filename: string[];
  recursive?: boolean;
}

/** Prints what `spry apply` would change, as the server would store it. The exit code is 1 if anything would change. */
export async function diff(options: DiffOptions): Promise<void> {
  const manifests = readManifests(options.filename, readOptions(options));
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

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
/** Random for each process: digests show whether two values are equal, but cannot be compared with digests of guesses. */
const digestKey = randomBytes(32);

/** The part of an object that users write; a Secret's values as digests. */
export function shown({
  apiVersion,
  kind,
  metadata,
  status: _status,
  ...rest
}: UnknownObject): string {
  const { name, namespace, labels } = metadata;
  // kubectl's own copy of the object, with a Secret's values.
  const { [lastApplied]: _copy, ...annotations } = metadata.annotations ?? {};
  const content: Record<string, unknown> = { ...rest };
  if (kind === "Secret")
    for (const part of ["data", "stringData"])
      if (content[part])
        content[part] = Object.fromEntries(
          Object.entries(content[part]).map(([key, value]) => [key, concealed(value)]),
        );
  const about = {
    name,
    namespace,
    labels,
    annotations: Object.keys(annotations).length > 0 ? annotations : undefined,
  };
  return dump(
    { apiVersion, kind, metadata: about, ...content },
    { skipInvalid: true, sortKeys: false, lineWidth: -1 },
  );
}

function concealed(value: unknown): string {
  const digest = createHmac("sha256", digestKey).update(String(value)).digest("hex");
  return `(not shown, ${digest.slice(0, 8)})`;
}

function coloured(line: string): string {
  const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
  return styleText(style, line, { stream: process.stdout, validateStream: true });
}
