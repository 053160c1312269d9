import { type Function } from "@spry/function/browser";
import { type Pod } from "@spry/kube/browser";

/** What every tab of a Function gets. */
export interface TabProps {
  fn: Function;
  /** Those that answer requests, and none of builds. */
  pods: readonly Pod[];
}
