import { existsSync } from "node:fs";
import { dump } from "js-yaml";
import { defaultFunction, type Function, functions, validateFunction } from "@spry/function";
import {
  apiVersionOf,
  isConflict,
  type KubeClient,
  messageOf,
  type Resource,
  StatusError,
  type UnknownObject,
} from "@spry/kube";
import { connect, type Connection, type GlobalOptions, readOptions, urlOf } from "../connection.ts";
import { applyObject } from "../apply-object.ts";
import { becameOf, found } from "../applied.ts";
import { followUntilRunning, stillGoing } from "../follow.ts";
import { ConfigFamily } from "../kyma/config-family.ts";
import { kymaConfigName } from "../kyma/config-yaml.ts";
import { type Manifest, readManifests, resourceOf } from "../manifests.ts";
import { Progress, silentProgress } from "../progress.ts";
import { printError } from "../print-error.ts";
import { retryFailedBuild } from "../retry-build.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

export interface ApplyOptions extends GlobalOptions {
  filename?: string[];
  recursive?: boolean;
  wait: boolean;
  timeout: number;
  forceConflicts?: boolean;
  dryRun?: boolean;
  /** `purge`: when something fails, what did not exist before is deleted again. */
  onerror?: string;
  /** `text` (the default), `json`, `yaml` or `none`. */
  output?: string;
  /** Events of the progress as objects, for programs. */
  json?: boolean;
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

/** Reads everything before the first write, applies in the order of the files, then follows the Functions. */
export const apply = (options: ApplyOptions): Promise<void> =>
  applyManifests(() => readManifests(filesOf(options), readOptions(options)), options);

/** The same for objects of any origin. */
export async function applyManifests(read: () => Manifest[], options: ApplyOptions): Promise<void> {
  const progress = options.output === "none" ? silentProgress : new Progress(options.json);
  await progress.run(() => applyWith(read, options, progress));
}

async function applyWith(
  read: () => Manifest[],
  options: ApplyOptions,
  progress: Progress,
): Promise<void> {
  const { onerror = "nothing", output = "text" } = options;
  assertOneOf("--onerror", onerror, ["nothing", "purge"]);
  assertOneOf("--output", output, ["text", "json", "yaml", "none"]);
  const manifests = read();
  const connection = await connect(options);
  const family = new ConfigFamily();
  const results: Result[] = [];
  const stored: Stored[] = [];
  const following: Promise<Result>[] = [];
  const followed: { name: string; namespace: string }[] = [];
  progress.whenInterrupted("nothing was applied");
  for (const manifest of manifests) {
    const result = await attempt(labelOf(manifest.object), async () => {
      if (isCurrent(manifest.object)) checkFunction(manifest);
      const object = await applyOne(connection.client, manifest, connection.namespace, {
        ...options,
        progress,
        stored,
        family,
      });
      if (!isFunction(object) || options.dryRun || !options.wait) return { outcome: "applied" };
      const prefix = manifests.length > 1 ? `${object.metadata.name}: ` : "";
      const { name = "", namespace = connection.namespace } = object.metadata;
      followed.push({ name, namespace });
      following.push(
        follow(connection, object as unknown as Function, { prefix, progress, ...options }),
      );
      return undefined;
    });
    if (result) results.push(result);
    progress.whenInterrupted(
      `${results.length + following.length} of ${manifests.length} objects were sent: apply again for the others`,
    );
  }
  const removed = await family.removeOthers(connection.client, options.dryRun ?? false);
  results.push(...removed.map((label) => ({ label, outcome: "deleted", details: "" })));
  for (const label of removed)
    progress.note(
      `${label} deleted${options.dryRun ? " (dry run)" : ""}: config.yaml no longer has it`,
    );
  progress.whenInterrupted(
    followed.length === 1 && followed[0]
      ? stillGoing(followed[0])
      : "the platform continues, and spry get shows the state",
  );
  results.push(...(await Promise.all(following)));
  const hasFailed = results.some(({ error }) => error !== undefined);
  if (hasFailed && onerror === "purge" && !options.dryRun)
    markPurged(results, await purge(connection.client, stored, progress));
  if (progress.isJson) return reportFailures(results, progress);
  if (output === "json" || output === "yaml") printObjects(stored, output);
  if (output === "text" || hasFailed) report(results);
}

/** An object as the server has it, and whether it was this command that created it. */
interface Stored {
  resource: Resource<UnknownObject>;
  object: UnknownObject;
  isNew: boolean;
}

/** The original's own file, where none is named. */
function filesOf({ filename = [] }: ApplyOptions): string[] {
  if (filename.length > 0) return filename;
  if (existsSync(kymaConfigName)) return [kymaConfigName];
  throw new UserError("nothing to apply", "name a file or a directory");
}

function assertOneOf(option: string, value: string, known: readonly string[]): void {
  if (!known.includes(value))
    throw new UserError(`${option} ${value} is not known`, `use ${known.join(", ")}`);
}

async function purge(
  client: KubeClient,
  stored: readonly Stored[],
  progress: Progress,
): Promise<Set<string>> {
  const purged = new Set<string>();
  for (const { resource, object, isNew } of stored.toReversed()) {
    if (!isNew) continue;
    const { name = "", namespace } = object.metadata;
    await client.delete(resource, { name, ...(namespace !== undefined && { namespace }) });
    const label = `${resource.kind.toLowerCase()}/${name}`;
    progress.note(`${label} deleted again`);
    purged.add(label);
  }
  return purged;
}

function markPurged(results: readonly Result[], purged: ReadonlySet<string>): void {
  for (const result of results)
    if (!result.error && purged.has(result.label))
      Object.assign(result, { outcome: "deleted again", details: "" });
}

/** Code stays as its lines are. */
const asWritten = { lineWidth: -1, noRefs: true };

function printObjects(stored: readonly Stored[], output: "json" | "yaml"): void {
  const items = stored.map(({ object }) => {
    const { managedFields: _ours, ...metadata } = object.metadata;
    return { ...object, metadata };
  });
  const [only] = items;
  const shown = items.length === 1 ? only : { apiVersion: "v1", kind: "List", items };
  const text = output === "json" ? JSON.stringify(shown, null, 2) : dump(shown, asWritten);
  console.log(text.trimEnd());
}

/** What has succeeded has been reported already. */
function reportFailures(results: readonly Result[], progress: Progress): void {
  for (const { label, error } of results) {
    if (!error) continue;
    progress.failed(error, label);
    process.exitCode = 1;
  }
}

const isCurrent = (object: UnknownObject): boolean =>
  isFunction(object) && object.apiVersion === apiVersionOf(functions);
const labelOf = ({ kind, metadata }: Manifest["object"]): string =>
  `${kind.toLowerCase()}/${metadata.name}`;

async function follow(
  { client, namespace, gateway }: Connection,
  stored: Function,
  { timeout, prefix, progress }: { timeout: number; prefix: string; progress: Progress },
): Promise<Result> {
  const { name = "", namespace: ns = namespace, generation = 0 } = stored.metadata;
  const result = await attempt(`function/${name}`, async () => {
    await followUntilRunning(client, {
      name,
      namespace: ns,
      generation,
      stored,
      timeoutMs: timeout === 0 ? Infinity : timeout * 1000,
      progress,
      prefix,
    });
    const url = gateway && urlOf(gateway, name, ns);
    progress.report({ event: "running", function: name, namespace: ns, url });
    return { outcome: "running", details: url ?? "" };
  });
  return result as Result;
}

/** A failure concerns one object only: the others continue. */
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
  for (const error of failures)
    printError(messageOf(error), error instanceof UserError ? error.wayOut : undefined);
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
      errors
        .map(
          ({ path, message }) =>
            `  - ${message.startsWith(`${path}: `) ? "" : `${path}: `}${message}`,
        )
        .join("\n"),
  );
}

/** As the file has it, for a repository: what the server adds belongs to one object of one cluster. */
function withoutOwners(object: UnknownObject): UnknownObject {
  const { ownerReferences: _ofCluster, ...metadata } = object.metadata;
  return { ...object, metadata };
}

async function applyOne(
  client: KubeClient,
  manifest: Manifest,
  namespace: string,
  options: ApplyOptions & { progress: Progress; stored: Stored[]; family: ConfigFamily },
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
  options.family.adopt(manifest, object);
  try {
    const before = await found(client, resource, object);
    const stored = await applyObject(client, resource, object, options);
    options.family.add(manifest, stored);
    const shown = options.dryRun ? withoutOwners(object) : stored;
    options.stored.push({ resource, object: shown, isNew: !before });
    const { namespace: ns } = object.metadata;
    const text = `${label} ${becameOf(before, stored)}${options.dryRun ? " (dry run)" : ""}`;
    options.progress.report({ event: "applied", object: label, namespace: ns }, text);
    if (options.dryRun || !isFunction(stored)) return stored;
    const again = await retryFailedBuild(client, stored as unknown as Function);
    return again as unknown as UnknownObject;
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new UserError(
      `${manifest.origin}: ${label}: ${(error as Error).message}`,
      "leave those fields out, or take them over with --force-conflicts",
    );
  }
}
