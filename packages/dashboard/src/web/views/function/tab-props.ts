import { type Function } from "@spry/function/browser";
import { type Pod } from "@spry/kube/browser";

/** What every tab of a Function's page gets. */
export interface TabProps {
  fn: Function;
  pods: readonly Pod[];
}
