import {
  type Condition,
  deepEqual,
  type HorizontalPodAutoscaler,
  isNotFound,
  messageOf,
  resources,
  setCondition,
  timestamp,
} from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { metricsOf, proposalOf } from "./metric-sources.ts";
import { MetricProblem, type MetricStatus, type Proposal } from "./proposal.ts";
import { readScaleTarget, type ScaleTarget, unreadableMessage } from "./scale-target.ts";
import { nextReplicas, type ScalingHistory } from "./scaling-behavior.ts";

type Autoscaler = HorizontalPodAutoscaler;

/** One look at one autoscaler; its conditions are collected and written at the end. */
export class AutoscalerPass {
  readonly #context: ControllerContext;
  readonly #autoscaler: Autoscaler;
  #conditions: Condition[];
  #currentReplicas: number;
  #desiredReplicas: number;
  #currentMetrics: MetricStatus[] | undefined;
  #lastScaleTime: string | undefined;

  constructor(context: ControllerContext, autoscaler: Autoscaler) {
    this.#context = context;
    this.#autoscaler = autoscaler;
    const { conditions, currentReplicas, desiredReplicas, currentMetrics, lastScaleTime } =
      autoscaler.status ?? {};
    this.#conditions = (conditions ?? []) as Condition[];
    this.#currentReplicas = currentReplicas ?? 0;
    this.#desiredReplicas = desiredReplicas ?? 0;
    this.#currentMetrics = currentMetrics;
    this.#lastScaleTime = lastScaleTime;
  }

  async run(history: ScalingHistory, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    const { spec } = this.#autoscaler;
    if (!spec) return;
    let target: ScaleTarget;
    try {
      target = await readScaleTarget(this.#context, this.#autoscaler, signal);
    } catch (error) {
      this.#warn("FailedGetScale", messageOf(error));
      return this.#put("AbleToScale", "False", "FailedGetScale", unreadableMessage(error));
    }
    this.#put(
      "AbleToScale",
      "True",
      "SucceededGetScale",
      "the HPA controller was able to get the target's current scale",
    );
    const current = target.replicas;
    if (history.recommendations.length === 0)
      history.recommendations.push({ at: clock.elapsed(), value: current });
    this.#currentReplicas = current;
    this.#currentMetrics = undefined;
    const min = spec.minReplicas ?? 1;
    if (current === 0) {
      this.#desiredReplicas = 0;
      return this.#put(
        "ScalingActive",
        "False",
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
      );
    }
    if (current > spec.maxReplicas)
      return this.#resize(
        target,
        spec.maxReplicas,
        "Current number of replicas above Spec.MaxReplicas",
        history,
      );
    if (current < min)
      return this.#resize(
        target,
        min,
        "Current number of replicas below Spec.MinReplicas",
        history,
      );
    const best = await this.#measure(target, signal);
    if (!best) return;
    const decision = nextReplicas(spec, current, best.replicas, history, clock.elapsed());
    this.#put("AbleToScale", "True", decision.stabilized.reason, decision.stabilized.message);
    const { isLimited, reason, message } = decision.limit;
    this.#put("ScalingLimited", isLimited ? "True" : "False", reason, message);
    this.#desiredReplicas = current;
    if (decision.replicas === current) return;
    const isGrowth = best.replicas > current;
    const why = isGrowth ? `${best.metric} above target` : "All metrics below target";
    await this.#resize(target, decision.replicas, why, history);
  }

  /** What the metrics ask for: of several the one that asks for most. Undefined when nothing can be said. */
  async #measure(target: ScaleTarget, signal: AbortSignal): Promise<Proposal | undefined> {
    const { selector, replicas: current, counted } = target;
    if (!selector) {
      this.#warn("SelectorRequired", "selector is required");
      this.#put(
        "ScalingActive",
        "False",
        "InvalidSelector",
        "the HPA target's scale is missing a selector",
      );
      this.#warn("FailedComputeMetricsReplicas", "selector is required");
      return undefined;
    }
    const metrics = metricsOf(this.#autoscaler);
    const about = { context: this.#context, autoscaler: this.#autoscaler, selector, signal };
    const of = { ...about, current, counted };
    const statuses: MetricStatus[] = [];
    const problems: MetricProblem[] = [];
    let best: Proposal | undefined;
    for (const metric of metrics) {
      try {
        const proposal = await proposalOf(of, metric);
        statuses.push(proposal.status);
        if (!best || proposal.replicas > best.replicas) best = proposal;
      } catch (error) {
        if (!(error instanceof MetricProblem)) throw error;
        this.#warn(error.reason, error.message);
        statuses.push({ type: "" });
        problems.push(error);
      }
    }
    this.#currentMetrics = statuses;
    const [problem] = problems;
    // On half of the metrics nothing is taken away: the other half might ask for it.
    if (problem && (!best || best.replicas < current)) {
      this.#put(
        "ScalingActive",
        "False",
        problem.reason,
        `the HPA was unable to compute the replica count: ${problem.message}`,
      );
      const count = `${problems.length} invalid out of ${metrics.length}`;
      this.#warn(
        "FailedComputeMetricsReplicas",
        `invalid metrics (${count}), first error is: ${problem.inSum}`,
      );
      return undefined;
    }
    this.#put(
      "ScalingActive",
      "True",
      "ValidMetricFound",
      `the HPA was able to successfully calculate a replica count from ${best?.metric}`,
    );
    return best;
  }

  async #resize(
    target: ScaleTarget,
    desired: number,
    why: string,
    history: ScalingHistory,
  ): Promise<void> {
    const { clock, events } = this.#context;
    try {
      await target.resize(desired);
    } catch (error) {
      this.#warn(
        "FailedRescale",
        `New size: ${desired}; reason: ${why}; error: ${messageOf(error)}`,
      );
      return this.#put(
        "AbleToScale",
        "False",
        "FailedUpdateScale",
        `the HPA controller was unable to update the target scale: ${messageOf(error)}`,
      );
    }
    this.#put(
      "AbleToScale",
      "True",
      "SucceededRescale",
      `the HPA controller was able to update the target scale to ${desired}`,
    );
    history.changes.push({ at: clock.elapsed(), value: desired - target.replicas });
    this.#desiredReplicas = desired;
    this.#lastScaleTime = timestamp(clock);
    const message = `New size: ${desired}; reason: ${why}`;
    events.record(resources.horizontalPodAutoscalers, this.#autoscaler, {
      type: "Normal",
      reason: "SuccessfulRescale",
      message,
    });
  }

  #put(type: string, status: "True" | "False", reason: string, message: string): void {
    const condition = { type, status, reason, message };
    this.#conditions = setCondition<Condition>(this.#conditions, condition, this.#context.clock);
  }

  #warn(reason: string, message: string): void {
    const note = { type: "Warning", reason, message } as const;
    this.#context.events.record(resources.horizontalPodAutoscalers, this.#autoscaler, note);
  }

  async writeStatus(): Promise<void> {
    const status = {
      ...(this.#lastScaleTime ? { lastScaleTime: this.#lastScaleTime } : {}),
      currentReplicas: this.#currentReplicas,
      desiredReplicas: this.#desiredReplicas,
      ...(this.#currentMetrics ? { currentMetrics: this.#currentMetrics } : {}),
      conditions: this.#conditions,
    } as NonNullable<Autoscaler["status"]>;
    const autoscaler = this.#autoscaler;
    if (deepEqual(autoscaler.status, status)) return;
    await this.#context.client
      .update(
        resources.horizontalPodAutoscalers,
        { ...autoscaler, status },
        { subresource: "status" },
      )
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }
}
