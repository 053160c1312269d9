import { type Function, type FunctionCondition } from "@spry/function/browser";

export type Tone = "good" | "busy" | "warn" | "bad" | "idle";

export interface FunctionState {
  /** One or two words. */
  word: string;
  tone: Tone;
  /** Which version serves meanwhile, where it is not the desired one. */
  note: string;
}

export const conditionOf = (fn: Function, type: string): FunctionCondition | undefined =>
  fn.status?.conditions?.find((each) => each.type === type);

/** The state of a Function as a user sees it, from its conditions (docs/compatibility.md#conditions). */
export function stateOf(fn: Function): FunctionState {
  const serving = fn.status?.revision;
  const note = serving === undefined ? "" : `version ${serving} still serves`;
  const state = (word: string, tone: Tone, more = note): FunctionState => ({
    word,
    tone,
    note: more,
  });
  if (fn.metadata.deletionTimestamp) return state("Being deleted", "busy", "");
  const status = (type: string) => conditionOf(fn, type)?.status;
  if (!fn.status?.conditions?.length) return state("Initializing", "busy", "");
  if (status("ConfigurationReady") === "False") return state("Invalid", "bad");
  if (status("BuildReady") === "False") {
    const isRetried = fn.status.build?.retryAfter !== undefined;
    return isRetried ? state("Build is retried", "warn") : state("Build failed", "bad");
  }
  if (status("Running") === "False") return state("Failed", "bad");
  if ((fn.status.observedGeneration ?? 0) < (fn.metadata.generation ?? 0))
    return state("Updating", "busy");
  if (status("ConfigurationReady") !== "True") return state("Fetching source", "busy");
  if (status("BuildReady") !== "True") return state("Building", "busy");
  if (status("Running") !== "True") return state("Deploying", "busy");
  const warning = fn.status.conditions.find(({ message }) => message.includes("Warning"));
  return warning ? state("Running", "warn", warning.message) : state("Running", "good", "");
}

/** The condition that keeps the desired version from running: the first that is False. */
export function problemOf(fn: Function): FunctionCondition | undefined {
  return ["ConfigurationReady", "BuildReady", "Running"]
    .map((type) => conditionOf(fn, type))
    .find((condition) => condition?.status === "False");
}

export function sourceOf({ spec }: Function): string {
  const { gitRepository, image } = spec.source ?? {};
  if (gitRepository) return `Git ${gitRepository.url.replace(/^https:\/\//, "")}`;
  return image ? "Directory" : "Inline";
}
