import { functions } from "@spry/function";
import {
  type Clock,
  type Condition,
  deepEqual,
  type Informer,
  type Logger,
  type ReconcileResult,
  setCondition,
} from "@spry/kube";
import { type ControllerConfig } from "../config.ts";
import { listed } from "../listed.ts";
import { releaseRegistrySecrets } from "../registry/registry-finalizer.ts";
import { type Configuration, configurationOf, type ConfigurationResult } from "./configuration.ts";
import { servedOf } from "./election.ts";
import { ensureRegistry, type RegistryDeps } from "../registry/ensure-registry.ts";
import { deletionHook, type Serverless, serverlesses, type ServerlessStatus } from "./types.ts";

export interface ServerlessReconcilerDeps extends RegistryDeps {
  informer: Informer<Serverless>;
  /** Brings the Function Controller to this configuration. */
  use: (config: ControllerConfig) => void;
  /** Sentences for the condition `Configured`. */
  remarks: () => readonly string[];
  clock: Clock;
  log: Logger;
}

/** After these times the number of Functions and the content of Secrets are checked again. */
const lookAgainMs = 5_000;
const secretCheckMs = 30_000;
const releaseCheckMs = 500;

type Verdict = Pick<Condition, "status" | "reason" | "message">;
type Refusal = Omit<Verdict, "status">;

/** One pass over all Serverless objects: the served one takes effect, the status of the others says that they do not. */
export function serverlessReconciler(
  deps: ServerlessReconcilerDeps,
): () => Promise<ReconcileResult> {
  const { client, informer, clock } = deps;
  /** Of the object in effect, as long as there is one. */
  let lastGood: ControllerConfig | undefined;

  async function writeStatus(object: Serverless, status: ServerlessStatus): Promise<void> {
    if (deepEqual(object.status, status)) return;
    await client.update(serverlesses, { ...object, status }, { subresource: "status" });
  }

  /** With these conditions in place of those of their types. */
  function withConditions(object: Serverless, verdicts: Record<string, Verdict>): Condition[] {
    const observedGeneration = object.metadata.generation ?? 0;
    let conditions = object.status?.conditions ?? [];
    for (const [type, verdict] of Object.entries(verdicts)) {
      conditions = setCondition(conditions, { type, observedGeneration, ...verdict }, clock);
    }
    return conditions;
  }

  async function setHook(object: Serverless, present: boolean): Promise<void> {
    const { name = "", namespace, finalizers = [], resourceVersion } = object.metadata;
    if (finalizers.includes(deletionHook) === present) return;
    const others = finalizers.filter((each) => each !== deletionHook);
    const desired = present ? [...others, deletionHook] : others;
    await client.patch(
      serverlesses,
      { name, namespace },
      {
        metadata: { finalizers: desired, resourceVersion },
      },
    );
  }

  async function refuse(object: Serverless, why: Refusal): Promise<void> {
    if (object.metadata.deletionTimestamp) return setHook(object, false);
    const conditions = withConditions(object, { Configured: { status: "False", ...why } });
    // Without the values of an earlier status, which are not in effect.
    await writeStatus(object, { state: "Warning", served: "False", conditions });
  }

  function refusalOf({ metadata }: Serverless, served: Serverless | undefined): Refusal {
    if (metadata.namespace !== deps.namespace)
      return {
        reason: "ConfigurationErr",
        message: `a Serverless object takes effect only in the namespace ${deps.namespace}, where the platform's administrators configure it: create it there`,
      };
    const { namespace, name } = served?.metadata ?? {};
    return {
      reason: "ServerlessDuplicated",
      message: `only one Serverless object can be in effect, and ${namespace}/${name} already is`,
    };
  }

  /** Functions are reconciled whatever is wrong with the object: as they were last, or by as much of it as can be used. */
  function useGood(result: ConfigurationResult): void {
    const usable = "errors" in result ? deps.base : result.configuration.config;
    deps.use(lastGood ?? { ...usable, holdsRegistrySecrets: true });
  }

  /** Deletion waits while there are Functions (docs/compatibility.md#serverless-object). */
  async function endServed(object: Serverless): Promise<ReconcileResult> {
    const { items } = await client.list(functions, { limit: 500 });
    if (items.length === 0) {
      lastGood = undefined;
      deps.use(deps.base);
      // What the Function Controller has had under way may have come after; it is looked at once more.
      if ((await releaseRegistrySecrets(client, deps.namespace)) > 0)
        return { requeueAfterMs: releaseCheckMs };
      await setHook(object, false);
      return {};
    }
    useGood(configurationOf(deps.base, object.spec ?? {}));
    const message = `deletion waits until these Functions are deleted: ${listed(items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))}`;
    const verdict: Verdict = { status: "False", reason: "DeletionErr", message };
    const conditions = withConditions(object, { Deleted: verdict });
    await writeStatus(object, { ...object.status, state: "Warning", conditions });
    return { requeueAfterMs: lookAgainMs };
  }

  async function serve(object: Serverless): Promise<ReconcileResult> {
    if (!object.metadata.finalizers?.includes(deletionHook)) await setHook(object, true);
    const spec = object.spec ?? {};
    const result = configurationOf(deps.base, spec);
    const registry = await ensureRegistry(deps, spec);
    const errors = [
      ...("errors" in result ? result.errors : []),
      ...("error" in registry ? [registry.error] : []),
    ];
    if ("errors" in result || "error" in registry) {
      const verdict: Verdict = {
        status: "False",
        reason: "ConfigurationErr",
        message: errors.join("; "),
      };
      const conditions = withConditions(object, { Configured: verdict });
      await writeStatus(object, { ...object.status, state: "Error", served: "True", conditions });
      useGood(result);
      return { requeueAfterMs: secretCheckMs };
    }
    lastGood = { ...result.configuration.config, holdsRegistrySecrets: true };
    deps.use(lastGood);
    const { remarks } = result.configuration;
    const said = [...registry.warnings, ...remarks, ...deps.remarks()];
    const configured = ["Configuration ready", ...said].slice(registry.warnings.length > 0 ? 1 : 0);
    await writeStatus(object, {
      ...statusOf(result.configuration),
      dockerRegistry: registry.address,
      state: registry.warnings.length > 0 ? "Warning" : "Ready",
      served: "True",
      conditions: withConditions(object, {
        Configured: { status: "True", reason: "Configured", message: configured.join("; ") },
        Installed: { status: "True", reason: "Installed", message: "Serverless installed" },
      }),
    });
    return registry.watched ? { requeueAfterMs: secretCheckMs } : {};
  }

  return async () => {
    const all = [...informer.list()];
    const served = servedOf(all, deps.namespace);
    for (const object of all)
      if (object !== served) await refuse(object, refusalOf(object, served));
    if (served?.metadata.deletionTimestamp) return endServed(served);
    if (served) return serve(served);
    // Without any object the installation's own configuration holds.
    lastGood = undefined;
    await ensureRegistry(deps, {});
    deps.use(deps.base);
    return {};
  };
}

function statusOf({ effective }: Configuration): ServerlessStatus {
  return Object.fromEntries(Object.entries(effective).filter(([, value]) => value !== ""));
}
