import { defaultFunction, type Function, functions, validateFunction } from "@spry/function";
import {
  apiVersionOf,
  isConflict,
  type KubeClient,
  messageOf,
  StatusError,
  type UnknownObject,
} from "@spry/kube";
import { connect, type Connection, type GlobalOptions, urlOf } from "../connection.ts";
import { applyObject } from "../apply-object.ts";
import { followUntilRunning } from "../follow.ts";
import { type Manifest, readManifests, resourceOf } from "../manifests.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

export interface ApplyOptions extends GlobalOptions {
  filename: string[];
  recursive?: boolean;
  wait: boolean;
  timeout: number;
  forceConflicts?: boolean;
  dryRun?: boolean;
}

/** What became of one object. */
interface Result {
  label: string;
  /** One or two words: `applied`, `running`, `failed`. */
  outcome: string;
  details: string;
  error?: UserError | StatusError;
}

const isFunction = (object: UnknownObject): boolean =>
  object.kind === functions.kind && (object.apiVersion ?? "").startsWith(`${functions.group}/`);

/** Checks everything before the first write, applies in the order of the files, then follows the Functions. */
export async function apply(options: ApplyOptions): Promise<void> {
  const manifests = readManifests(options.filename, { isRecursive: options.recursive ?? false });
  for (const manifest of manifests) if (isCurrent(manifest.object)) checkFunction(manifest);
  const connection = await connect(options);
  const results: Result[] = [];
  const following: Promise<Result>[] = [];
  for (const manifest of manifests) {
    const result = await attempt(labelOf(manifest.object), async () => {
      const object = await applyOne(connection.client, manifest, connection.namespace, options);
      if (!isFunction(object) || options.dryRun || !options.wait) return { outcome: "applied" };
      const prefix = manifests.length > 1 ? `${object.metadata.name}: ` : "";
      following.push(follow(connection, object as unknown as Function, prefix, options));
      return undefined;
    });
    if (result) results.push(result);
  }
  results.push(...(await Promise.all(following)));
  report(results);
}

const isCurrent = (object: UnknownObject): boolean =>
  isFunction(object) && object.apiVersion === apiVersionOf(functions);
const labelOf = ({ kind, metadata }: Manifest["object"]): string =>
  `${kind.toLowerCase()}/${metadata.name}`;

async function follow(
  { client, namespace, gateway }: Connection,
  { metadata }: Function,
  prefix: string,
  { timeout }: ApplyOptions,
): Promise<Result> {
  const { name = "", namespace: ns = namespace, generation = 0 } = metadata;
  const result = await attempt(`function/${name}`, async () => {
    await followUntilRunning(client, {
      name,
      namespace: ns,
      generation,
      timeoutMs: timeout * 1000,
      report: (line) => console.error(`  ${prefix}${line}`),
    });
    return { outcome: "running", details: gateway ? urlOf(gateway, name, ns) : "" };
  });
  return result as Result;
}

/** One object's failure is its own: the others go on. */
async function attempt(
  label: string,
  work: () => Promise<{ outcome: string; details?: string } | undefined>,
): Promise<Result | undefined> {
  try {
    const done = await work();
    return done && { label, details: "", ...done };
  } catch (error) {
    if (!(error instanceof UserError || error instanceof StatusError)) throw error;
    const [details = ""] = messageOf(error).split("\n");
    return { label, outcome: "failed", details, error };
  }
}

/** A table where there is more than one; the URLs alone, on standard output, where one has been asked for. */
function report(results: readonly Result[]): void {
  const failures = results.flatMap(({ error }) => error ?? []);
  const [only] = failures;
  if (results.length === 1 && only) throw only;
  if (results.length === 1) {
    const details = results[0]?.details;
    if (details) console.log(details);
    return;
  }
  for (const error of failures) {
    console.error(`error: ${messageOf(error)}`);
    if (error instanceof UserError && error.wayOut) console.error(`       ${error.wayOut}`);
  }
  if (failures.length > 0) process.exitCode = 1;
  const rows = results.map(({ label, outcome, details }) => [label, outcome, details]);
  for (const line of tableLines(["OBJECT", "RESULT", "DETAILS"], rows)) console.log(line);
}

/** The same rules that the server has, so that mistakes are reported without a server. */
function checkFunction({ object, origin }: Manifest): void {
  const errors = validateFunction(defaultFunction(structuredClone(object) as unknown as Function));
  if (errors.length === 0) return;
  throw new UserError(
    `${origin}: Function ${object.metadata.name} is not valid:\n` +
      errors.map((error) => `  - ${error.path}: ${error.message}`).join("\n"),
  );
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
  if (options.namespace && resource.namespaced && object.metadata.namespace !== options.namespace)
    throw new UserError(
      `${manifest.origin}: ${labelOf(object)} is in namespace ${object.metadata.namespace}, and --namespace is ${options.namespace}`,
      "leave one of the two out",
    );
  const label = labelOf(object);
  try {
    const stored = await applyObject(client, resource, object, options);
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
