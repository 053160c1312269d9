import { type Function } from "@spry/function/browser";
import { type Pod } from "@spry/kube/browser";

/** What every tab of a Function gets. */
export interface TabProps {
  fn: Function;
  /** The Pods that answer requests; those of builds are not among them. */
  pods: readonly Pod[];
  /** Why the Pods are not known; empty where they are. */
  podsProblem: string;
}
