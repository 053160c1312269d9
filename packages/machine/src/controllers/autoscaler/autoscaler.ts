import { Controller, deepEqual, keyOf } from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { AutoscalerPass } from "./autoscaler-pass.ts";
import { type ScalingHistory } from "./scaling-behavior.ts";

/** kube-controller-manager's `--horizontal-pod-autoscaler-sync-period`. */
const syncMs = 15_000;

/** Follows what Pods really use with the number of Pods (`pkg/controller/podautoscaler/horizontal.go`). */
export function createAutoscaler(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const histories = new Map<string, ScalingHistory>();
  const controller = new Controller({
    name: "horizontal-pod-autoscaler",
    workers: 2,
    clock,
    log,
    async reconcile(key, signal) {
      const autoscaler = caches.autoscalers.get(key);
      if (!autoscaler || autoscaler.metadata.deletionTimestamp) return void histories.delete(key);
      const history = histories.get(key) ?? { recommendations: [], changes: [] };
      histories.set(key, history);
      const pass = new AutoscalerPass(context, autoscaler);
      await pass.run(history, signal);
      await pass.writeStatus();
      return { requeueAfterMs: syncMs };
    },
  });
  caches.autoscalers.onChange((change) => {
    const { type, object } = change;
    // A change of its status alone is its own, and needs no pass.
    const isNews = type !== "updated" || !deepEqual(change.previous.spec, object.spec);
    if (isNews) controller.enqueue(keyOf(object));
  });
  return controller;
}
