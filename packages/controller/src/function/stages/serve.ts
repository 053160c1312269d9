/** The stages of a Function that is served on demand, by a Knative Service (docs/adr/0018-serving-from-zero.md). */
import { knative, type KService } from "@spry/function";
import { isControlledBy, resources } from "@spry/kube";
import { deleteIfThere, ensureChild } from "../../children.ts";
import { contains } from "../../contains.ts";
import { desiredKService } from "../desired/kservice.ts";
import { desiredService } from "../desired/service.ts";
import { isServing } from "../serving/kservice-state.ts";
import { hasSelector, removeFormerEndpoints, slicesOf } from "../serving/service-slices.ts";
import { builtOf, done, type Stage } from "../stage.ts";
import { refused } from "./refused.ts";

const missingRecheckMs = 5_000;
const handOverRecheckMs = 250;

/** Asks for the Knative Service that runs the image. The end of the pass reports its state. */
export const serveOnDemand: Stage = {
  name: "serve",
  condition: "Running",

  async run(draft, deps) {
    const { client, caches, settings, references } = deps;
    const { fn, key, revision } = draft;
    if (!caches.kservices.hasSynced) {
      return {
        kind: "wait",
        reason: "DeploymentWaiting",
        message: `the cluster does not serve ${knative.services.group}: the Function cannot be served on demand`,
        recheckAfterMs: missingRecheckMs,
      };
    }
    try {
      // Before the Route makes one of its own: the Service is the Function's, in both ways of serving.
      if (!caches.services.get(key)) {
        await ensureChild(client, caches.services, fn, desiredService(fn, { hasSelector: false }));
      }
      // Without a revision the record stage does not let a Function come here.
      if (revision === undefined) throw new Error(`serving ${key}: it has no revision`);
      const inputs = { ...builtOf(draft), revision, references: await references.digest(key, fn) };
      const desired = desiredKService(fn, settings, inputs);
      const written = withSameTemplate;
      draft.kservice = (
        await ensureChild(client, caches.kservices, fn, desired, { written })
      ).object;
      return done;
    } catch (error) {
      return refused(error, "DeploymentFailed");
    }
  },
};

/**
 * A template keeps what Knative has completed in it for as long as its name stays: a Revision never changes, and the webhook
 * refuses a template of the same name that lacks a default.
 */
function withSameTemplate(complete: KService, observed: KService): KService {
  const { template } = observed.spec;
  const isSame =
    template.metadata?.name === complete.spec.template.metadata?.name &&
    contains(template, complete.spec.template);
  return isSame ? { ...complete, spec: { ...complete.spec, template } } : complete;
}

/**
 * Gives the requests to the Knative Service once it serves, in an order in which each of them finds Pods: the selector goes, and
 * with it nothing yet, because Kubernetes leaves the endpoints behind; the serving room writes the slice that leads to
 * the gateway; the former endpoints go; some seconds later, the Deployment.
 */
export const handOverToKnative: Stage = {
  name: "hand over",
  condition: "Running",

  async run({ fn, key, namespace, name, kservice }, { client, caches, handOvers }) {
    if (!kservice || !isServing(kservice)) {
      handOvers.forget(key);
      return done;
    }
    const { object: service } = await ensureChild(
      client,
      caches.services,
      fn,
      desiredService(fn, { hasSelector: false }),
    );
    const deployment = caches.deployments.get(key);
    if (!deployment || !isControlledBy(deployment, fn)) {
      handOvers.forget(key);
      return done;
    }
    const recheck = { ...done, recheckAfterMs: handOverRecheckMs };
    if (hasSelector(service)) return recheck;
    const slices = await slicesOf(client, { namespace, name });
    if (slices.gateway.length === 0) return recheck;
    await removeFormerEndpoints(client, { namespace, name }, slices.others);
    const remainingMs = handOvers.remainingMs(key);
    if (remainingMs > 0) return { ...done, recheckAfterMs: remainingMs };
    const autoscaler = caches.autoscalers.get(key);
    if (autoscaler && isControlledBy(autoscaler, fn)) {
      await deleteIfThere(client, resources.horizontalPodAutoscalers, autoscaler);
    }
    await deleteIfThere(client, resources.deployments, deployment);
    handOvers.forget(key);
    return done;
  },

  forget: (key, { handOvers }) => handOvers.forget(key),
};
