import { functions } from "@spry/function";
import { isNotFound, type KubeClient, type Resource, StatusError, type Target } from "@spry/kube";
import { confirm } from "../confirm.ts";
import { connect, type GlobalOptions, readOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { readManifests, resourceOf } from "../manifests.ts";
import { printError } from "../print-error.ts";
import { UserError } from "../user-error.ts";

export interface DeleteOptions extends GlobalOptions {
  filename?: string[];
  recursive?: boolean;
  wait: boolean;
  /** Delete without asking. */
  yes?: boolean;
  /** Ask the server, and delete nothing. */
  dryRun?: boolean;
}

interface Doomed {
  resource: Resource;
  name: string;
  namespace: string | undefined;
}

const waitMs = 60_000;

export async function remove(names: string[], options: DeleteOptions): Promise<void> {
  if (names.length === 0 && !options.filename) {
    throw new UserError("nothing to delete", "name Functions, or manifests with -f FILE");
  }
  const { client, namespace } = await connect(options);
  const count = names.length + (options.filename?.length ?? 0);
  const what =
    names.length === count
      ? `Function${count === 1 ? "" : "s"} ${names.join(", ")} in namespace ${namespace}`
      : `what ${[...names, ...(options.filename ?? [])].join(", ")} describe`;
  // What does not exist needs no question.
  if (!options.yes && !options.dryRun && names.length === count)
    for (const name of names) await findFunction(client, namespace, name);
  await confirm(
    `Delete ${what}, with everything that belongs to ${count === 1 ? "it" : "them"}?`,
    options.yes ?? options.dryRun,
  );
  const doomed: Doomed[] = names.map((name) => ({ resource: functions, name, namespace }));
  for (const manifest of options.filename
    ? readManifests(options.filename, readOptions(options))
    : []) {
    const resource = await resourceOf(client, manifest);
    const { name = "", namespace: own } = manifest.object.metadata;
    doomed.push({
      resource,
      name,
      namespace: resource.namespaced ? (own ?? namespace) : undefined,
    });
  }
  // Functions in the order of their names; of manifests what was applied last is deleted first: a namespace goes after
  // what is in it.
  const ofManifests = doomed.splice(names.length).reverse();
  const failures: (UserError | StatusError)[] = [];
  for (const one of [...doomed, ...ofManifests]) {
    try {
      await removeOne(client, one, options);
    } catch (error) {
      // One that cannot be deleted does not keep the others.
      if (!(error instanceof UserError || error instanceof StatusError)) throw error;
      failures.push(error);
    }
  }
  const [first] = failures;
  if (failures.length === 1 && first) throw first;
  for (const error of failures)
    printError(error.message, error instanceof UserError ? error.wayOut : undefined);
  if (failures.length > 0) process.exitCode = 1;
}

async function removeOne(
  client: KubeClient,
  { resource, name, namespace }: Doomed,
  { wait, dryRun = false }: DeleteOptions,
): Promise<void> {
  const label = `${resource.kind.toLowerCase()}/${name}`;
  try {
    await client.delete(
      resource,
      { namespace, name },
      { propagationPolicy: "Foreground", ...(dryRun && { dryRun: ["All"] }) },
    );
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new UserError(
      `${resource.kind} ${name} not found${namespace ? ` in namespace ${namespace}` : ""}`,
      resource === functions ? "`spry get -A` lists all Functions" : undefined,
    );
  }
  if (wait && !dryRun) await untilGone(client, resource, { namespace, name });
  console.error(`${label} deleted${dryRun ? " (dry run)" : ""}`);
}

async function untilGone(client: KubeClient, resource: Resource, target: Target): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (await exists(client, resource, target)) {
    if (performance.now() > deadline) {
      throw new UserError(
        `${resource.kind} ${target.name} is marked for deletion but still exists after ${waitMs / 1000} s`,
        `kubectl get ${resource.plural} ${target.name} -o yaml shows which finalizer holds it`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function exists(client: KubeClient, resource: Resource, target: Target) {
  try {
    await client.get(resource, target);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
