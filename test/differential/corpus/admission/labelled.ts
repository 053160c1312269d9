import { patch, type Step } from "../../step.ts";

export const podSecurityPrefix = "pod-security.kubernetes.io/";
export const settleMs = 200;

/** Labels of Pod Security for the case's namespace, by their last parts. */
export function labelled(labels: Record<string, string>): Step {
  const prefixed = Object.fromEntries(
    Object.entries(labels).map(([key, value]) => [podSecurityPrefix + key, value]),
  );
  return patch("merge", "/api/v1/namespaces/$ns", { metadata: { labels: prefixed } });
}

/** The steps, once a real server has heard of the labels. */
export const settled = ([first, ...others]: Step[]): Step[] => [
  ...(first ? [{ ...first, settleMs }] : []),
  ...others,
];

/** The steps in a namespace that takes every Pod. */
export const withoutPodSecurity = (steps: Step[]): Step[] => [
  labelled({ enforce: "privileged", warn: "privileged" }),
  ...settled(steps),
];
