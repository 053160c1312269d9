import {
  defaultFunction,
  type Function,
  functions,
  type FunctionStatus,
  isServedOnDemand,
  managedBy,
  resolveResources,
} from "@spry/function";
import {
  deepEqual,
  isNotFound,
  type KubeClient,
  mergePatchBetween,
  type ObjectKey,
  type Reconcile,
  type ReconcileResult,
  transportOf,
} from "@spry/kube";
import { conditionOf, newsOf, observe } from "./conditions.ts";
import { observeHealth } from "./health.ts";
import { LatestFunctions } from "./latest-functions.ts";
import { observeRollout, observeScale } from "./rollout.ts";
import { type Deps, type Draft, type Outcome, type Stage } from "./stage.ts";
import { buildImage } from "./stages/build.ts";
import { deployWorkload } from "./stages/deploy.ts";
import { exposeService } from "./stages/expose.ts";
import { recordRevision } from "./stages/record.ts";
import { restoreRevisions } from "./stages/restore-revisions.ts";
import { markServed } from "./served-revision.ts";
import { retireKService } from "./stages/retire-kservice.ts";
import { scaleWorkload } from "./stages/scale.ts";
import { handOverToKnative, serveOnDemand } from "./stages/serve.ts";
import { resolveSource } from "./stages/source.ts";
import { validate } from "./stages/validate.ts";

/** In this order: each relies on the results of those before it. */
const toImage: readonly Stage[] = [validate, resolveSource, buildImage, recordRevision];

/** From the image on there are two ways to serve a Function (docs/compatibility.md#serving). */
const asDeployment = [...toImage, deployWorkload, exposeService, scaleWorkload, retireKService];
const onDemand = [...toImage, serveOnDemand, restoreRevisions, handOverToKnative];

function stagesOf({ fn }: Draft): readonly Stage[] {
  return isServedOnDemand(fn.spec) ? onDemand : asDeployment;
}

const everyStage = new Set([...asDeployment, ...onDemand]);

function stagesAfter(last: Stage, draft: Draft): readonly Stage[] {
  const all = stagesOf(draft);
  return all.slice(all.indexOf(last) + 1);
}

/** One pass over one Function: stages as far as they get, then one write of the status. */
export function functionReconciler(everything: Deps): Reconcile {
  const latest = new LatestFunctions(everything.caches.functions);
  return async (key, signal) => {
    const deps = { ...everything, client: boundTo(signal, everything.client) };
    const stored = latest.get(key);
    // The children are deleted through their owner references; there is nothing to clean up.
    if (!stored || stored.metadata.deletionTimestamp) return forget(key, deps);
    const startedAt = deps.clock.elapsed();
    const draft = draftOf(key, stored);
    describe(draft, deps);
    let failure: { error: unknown } | undefined;
    let result: ReconcileResult | undefined;
    try {
      const { outcome, last } = await runStages(draft, deps);
      for (const stage of stagesAfter(last, draft)) stage.release?.(key, deps);
      report(draft, outcome, last, deps);
      observeHealth(draft.status, stored.metadata.generation ?? 0, deps.clock);
      if (outcome.kind !== "stop") result = recheck(outcome.recheckAfterMs);
    } catch (error) {
      for (const stage of stagesOf(draft)) stage.release?.(key, deps);
      failure = { error };
    }
    let written: Function | undefined;
    try {
      // Also after an error: what has been reached is not to be done again.
      written = await writeStatus(stored, draft.status, deps);
      if (written) latest.wrote(key, written);
      await markServed(draft, deps);
    } catch (error) {
      // Of two errors the stage's own says more; both are tried again.
      failure ??= { error };
    }
    const seconds = (deps.clock.elapsed() - startedAt) / 1000;
    deps.metrics?.passed(draft.fn, written, seconds, deps.clock);
    if (failure) throw failure.error;
    return result;
  };
}

/** A client whose requests end with the pass. */
function boundTo(signal: AbortSignal, client: KubeClient): KubeClient {
  return client.through((transport) => {
    const { ask } = transport;
    const send = (request: Request) => transport(new Request(request, { signal }));
    return transportOf(send, ask && ((request) => ask({ ...request, signal })));
  });
}

function forget(key: ObjectKey, deps: Deps): void {
  for (const stage of everyStage) stage.forget?.(key, deps);
  deps.metrics?.forget(key);
}

function draftOf(key: ObjectKey, stored: Function): Draft {
  const { namespace = "", name = "" } = stored.metadata;
  // Replicas are what is stored: a scaler may have its reasons to leave the bounds.
  const replicas = stored.spec.replicas;
  const fn = defaultFunction(stored);
  const spec = replicas === undefined ? fn.spec : { ...fn.spec, replicas };
  const status = structuredClone(stored.status ?? {});
  return { key, namespace, name, fn: { ...fn, spec }, status };
}

/** What the status says about the Function itself. */
function describe({ fn, status }: Draft, { settings }: Deps): void {
  const { function: own, build } = fn.spec.resourceConfiguration ?? {};
  const { defaultFunctionPreset, defaultBuildPreset } = settings;
  status.functionResourceProfile = resolveResources("function", own, defaultFunctionPreset).profile;
  status.buildResourceProfile = resolveResources("build", build, defaultBuildPreset).profile;
}

async function runStages(draft: Draft, deps: Deps): Promise<{ outcome: Outcome; last: Stage }> {
  let outcome: Outcome = { kind: "done" };
  let last = validate;
  let recheckAfterMs: number | undefined;
  for (const stage of stagesOf(draft)) {
    last = stage;
    outcome = await stage.run(draft, deps);
    if (outcome.kind !== "done") break;
    recheckAfterMs = earlier(recheckAfterMs, outcome.recheckAfterMs);
    if (outcome.reason) say(draft, stage, outcome, deps);
  }
  if (outcome.kind === "done" && recheckAfterMs !== undefined)
    outcome = { ...outcome, recheckAfterMs };
  return { outcome, last };
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** The condition of the stage that ended the pass, and the Deployment's state. */
function report(draft: Draft, outcome: Outcome, last: Stage, deps: Deps): void {
  observeScale(draft, deps);
  draft.status.observedGeneration = draft.fn.metadata.generation ?? 0;
  if (outcome.kind === "done") {
    observeRollout(draft, true, deps);
    return observeRevision(draft);
  }
  say(draft, last, outcome, deps);
  if (last.condition !== "Running") observeRollout(draft, false, deps);
}

/** Until the newest revision is ready, the one before serves. */
function observeRevision({ status, revision }: Draft): void {
  if (conditionOf(status, "Running")?.reason !== "DeploymentReady") return;
  if (revision === undefined) delete status.revision;
  else status.revision = revision;
}

function say({ fn, status }: Draft, { condition }: Stage, outcome: Outcome, { clock }: Deps): void {
  const { reason, message = "" } = outcome;
  if (reason)
    observe(status, condition, { reason, message, generation: fn.metadata.generation }, clock);
}

/** One patch, only of what changed, and only onto the version that was looked at. */
async function writeStatus(
  stored: Function,
  status: FunctionStatus,
  { client, events }: Deps,
): Promise<Function | undefined> {
  const before = stored.status ?? {};
  if (deepEqual(before, status)) return undefined;
  const { namespace, name = "", resourceVersion } = stored.metadata;
  const patch = { metadata: { resourceVersion }, status: mergePatchBetween(before, status) };
  const options = { subresource: "status", fieldManager: managedBy };
  try {
    const written = await client.patch(functions, { namespace, name }, patch, options);
    for (const condition of newsOf(before, status)) {
      const { reason, message } = condition;
      const type = condition.status === "False" ? "Warning" : "Normal";
      events.record(functions, stored, { type, reason, message });
    }
    if (before.lastColdStart !== status.lastColdStart) {
      const message = "requests arrived while it had no Pods";
      events.record(functions, stored, { type: "Normal", reason: "ColdStart", message });
    }
    return written;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function recheck(ms: number | undefined): ReconcileResult | undefined {
  return ms === undefined ? undefined : { requeueAfterMs: ms };
}
