import { type Function, isServedOnDemand } from "@spry/function/browser";
import { type Pod } from "@spry/kube/browser";
import { conditionOf, type Tone } from "./function-state.ts";

/** A link of the chain from source to Pods. */
export interface Link {
  name: "Source" | "Build" | "Image" | "Deploy" | "Pods";
  tone: Tone;
  /** A few words. */
  text: string;
  /** Where the user sees more: a tab of the Function's view. */
  tab: string;
}

/**
 * How far a Function is on its way from source to Pods, and which link blocks it. Without `pods`, they are not known: the user may not
 * see them.
 */
export function chainOf(fn: Function, pods: readonly Pod[] | undefined): Link[] {
  const { spec, status } = fn;
  const tones = {
    Source: toneOf(fn, "ConfigurationReady"),
    Build: toneOf(fn, "BuildReady"),
    Deploy: toneOf(fn, "Running"),
  };
  // The links after a failed one have not begun.
  if (tones.Source !== "good") tones.Build = "idle";
  if (tones.Build !== "good") tones.Deploy = "idle";
  const image = status?.build?.image?.split("@")[1]?.slice(7, 19);
  const isBuilt = tones.Build === "good" && image !== undefined;
  return [
    { name: "Source", tone: tones.Source, text: sourceText(fn), tab: "code" },
    { name: "Build", tone: tones.Build, text: words(fn, "BuildReady", tones.Build), tab: "builds" },
    {
      name: "Image",
      tone: isBuilt ? "good" : "idle",
      text: isBuilt ? image : "not built yet",
      tab: "yaml",
    },
    {
      name: "Deploy",
      tone: tones.Deploy,
      text: words(fn, "Running", tones.Deploy),
      tab: "history",
    },
    {
      name: "Pods",
      ...(pods
        ? podsText(pods, isServedOnDemand(spec))
        : { tone: "idle", text: "not visible to you" }),
      tab: "logs",
    },
  ];
}

function toneOf(fn: Function, type: string): Tone {
  const condition = conditionOf(fn, type);
  if (condition === undefined) return "idle";
  if (condition.status === "True") return "good";
  return condition.status === "False" ? "bad" : "busy";
}

function sourceText({ spec, status }: Function): string {
  const { gitRepository, image, inline } = spec.source;
  if (gitRepository)
    return `${gitRepository.reference} ${status?.commit?.slice(0, 8) ?? ""}`.trim();
  if (image) return "directory";
  return `inline, ${linesOf(inline?.source)}`;
}

function words(fn: Function, type: string, tone: Tone): string {
  const reason = conditionOf(fn, type)?.reason ?? "";
  if (tone === "idle") return "waiting";
  if (tone === "good") return type === "BuildReady" ? "finished" : "rolled out";
  const text: Record<string, string> = {
    JobWaiting: "waits for a slot",
    JobCreated: "starting",
    JobRunning: "running",
    JobFailed: "failed",
    DeploymentWaiting: "waits",
    MinReplicasNotAvailable: "waits for Pods",
    DeploymentFailed: "failed",
    ServiceFailed: "failed",
  };
  return text[reason] ?? (tone === "bad" ? "failed" : "in progress");
}

function podsText(pods: readonly Pod[], isOnDemand: boolean): { tone: Tone; text: string } {
  const alive = pods.filter(({ metadata }) => !metadata.deletionTimestamp);
  const ready = alive.filter(isReady).length;
  if (alive.length === 0)
    return { tone: "idle", text: isOnDemand ? "none until a request" : "none" };
  const isFailing = alive.some((pod) => podProblem(pod) !== undefined);
  const tone = ready === alive.length ? "good" : isFailing ? "bad" : "busy";
  return { tone, text: `${ready} of ${alive.length} ready` };
}

export function isReady({ status }: Pod): boolean {
  return (
    status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false
  );
}

/** Why a container of a Pod does not run: the reason in its status. */
export function podProblem({ status }: Pod): string | undefined {
  for (const { state, lastState, restartCount } of status?.containerStatuses ?? []) {
    const reason = state?.waiting?.reason ?? state?.terminated?.reason;
    if (reason && !["ContainerCreating", "PodInitializing", "Completed"].includes(reason))
      return reason;
    if (restartCount > 0 && lastState?.terminated && !state?.running) return "restarting";
  }
  return undefined;
}

/** `1 line`, `12 lines`. */
export function linesOf(text = ""): string {
  const count = text.replace(/\n$/, "").split("\n").length;
  return count === 1 ? "1 line" : `${count} lines`;
}
