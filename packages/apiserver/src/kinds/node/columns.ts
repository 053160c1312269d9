import { type Node } from "@spry/kube";
import { ageColumn, column, type Column, wide } from "../../table/column.ts";

export const nodeColumns: Column[] = [
  column<Node>("Status", nodeStatus),
  column<Node>("Roles", nodeRoles),
  ageColumn,
  column<Node>("Version", (node) => node.status?.nodeInfo?.kubeletVersion),
  column<Node>("Internal-IP", (node) => address(node, "InternalIP"), wide),
  column<Node>("External-IP", (node) => address(node, "ExternalIP"), wide),
  column<Node>("OS-Image", (node) => node.status?.nodeInfo?.osImage || "<unknown>", wide),
  column<Node>(
    "Kernel-Version",
    (node) => node.status?.nodeInfo?.kernelVersion || "<unknown>",
    wide,
  ),
  column<Node>(
    "Container-Runtime",
    (node) => node.status?.nodeInfo?.containerRuntimeVersion || "<unknown>",
    wide,
  ),
];

function nodeStatus(node: Node): string {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  const word = ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown";
  return node.spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function nodeRoles({ metadata }: Node): string | undefined {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith(prefix));
  return (
    roles
      .map((key) => key.slice(prefix.length))
      .sort()
      .join(",") || undefined
  );
}

function address(node: Node, type: string): string | undefined {
  return node.status?.addresses?.find((each) => each.type === type)?.address;
}
