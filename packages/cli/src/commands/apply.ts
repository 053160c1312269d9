import { type Function, functions, validateFunction, defaultFunction } from "@spry/function";
import {
  apiVersionOf,
  isConflict,
  type KubeClient,
  type StatusError,
  type UnknownObject,
} from "@spry/kube";
import { connect, type GlobalOptions, urlOf } from "../connection.ts";
import { followUntilRunning } from "../follow.ts";
import { type Manifest, readManifests, resourceOf } from "../manifests.ts";
import { UserError } from "../user-error.ts";

export interface ApplyOptions extends GlobalOptions {
  filename: string[];
  wait: boolean;
  timeout: number;
  forceConflicts?: boolean;
  dryRun?: boolean;
}

const isFunction = (object: UnknownObject): boolean =>
  object.kind === functions.kind && object.apiVersion === apiVersionOf(functions);

/** Checks everything before the first write, applies in the order of the files, then follows the Functions. */
export async function apply(options: ApplyOptions): Promise<void> {
  const manifests = readManifests(options.filename);
  for (const manifest of manifests) if (isFunction(manifest.object)) checkFunction(manifest);
  const { client, namespace, gateway } = await connect(options);
  const applied: Function[] = [];
  for (const manifest of manifests) {
    const object = await applyOne(client, manifest, namespace, options);
    if (isFunction(object)) applied.push(object as unknown as Function);
  }
  if (options.dryRun || !options.wait) return;
  for (const { metadata } of applied) {
    const { name = "", namespace: ns = namespace, generation = 0 } = metadata;
    await followUntilRunning(client, {
      name,
      namespace: ns,
      generation,
      timeoutMs: options.timeout * 1000,
      report: (line) => console.error(`  ${line}`),
    });
    if (gateway) console.log(urlOf(gateway, name, ns));
  }
}

/** The same rules that the server has, so that mistakes are reported without a server. */
function checkFunction({ object, origin }: Manifest): void {
  const errors = validateFunction(defaultFunction(object as unknown as Function));
  if (errors.length === 0) return;
  throw new UserError(
    `${origin}: Function ${object.metadata.name} is not valid:\n` +
      errors.map((error) => `  - ${error.path}: ${error.message}`).join("\n"),
  );
}

const fieldManager = "spry-cli";

/** `spry rollback` and `spry traffic` write fields, too: what the same user applies afterwards replaces that. */
function isOwnConflict(error: unknown): boolean {
  if (!isConflict(error)) return false;
  const { causes = [] } = (error as StatusError).status.details ?? {};
  const own = `conflict with "${fieldManager}"`;
  return causes.length > 0 && causes.every(({ message }) => message?.startsWith(own));
}

async function applyOne(
  client: KubeClient,
  manifest: Manifest,
  namespace: string,
  options: ApplyOptions,
): Promise<UnknownObject> {
  const resource = await resourceOf(client, manifest);
  const object = structuredClone(manifest.object);
  if (resource.namespaced) object.metadata.namespace ??= namespace;
  const label = `${resource.kind.toLowerCase()}/${object.metadata.name}`;
  const write = (force: boolean) =>
    client.apply(resource, object, { fieldManager, force, dryRun: options.dryRun ?? false });
  try {
    const stored = await write(options.forceConflicts ?? false).catch((error: unknown) => {
      if (!isOwnConflict(error)) throw error;
      return write(true);
    });
    console.error(`${label} applied${options.dryRun ? " (dry run)" : ""}`);
    return stored;
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new UserError(
      `${manifest.origin}: ${label}: ${(error as Error).message}`,
      "leave those fields out, or take them over with --force-conflicts",
    );
  }
}
