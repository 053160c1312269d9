import { type ApiRule } from "@spry/function";
import { type Change, deepEqual } from "@spry/kube";

/** Whether a change is of the status alone, and not of the hosts in it: neither hosts nor other statuses follow from it. */
export function isStatusAlone(change: Change<ApiRule>): boolean {
  if (change.type !== "updated") return false;
  const [one, other] = [change.previous.metadata, change.object.metadata];
  return (
    one.uid === other.uid &&
    one.generation !== undefined &&
    one.generation === other.generation &&
    one.deletionTimestamp === other.deletionTimestamp &&
    deepEqual(one.annotations ?? {}, other.annotations ?? {}) &&
    deepEqual(change.previous.status?.hosts, change.object.status?.hosts)
  );
}
