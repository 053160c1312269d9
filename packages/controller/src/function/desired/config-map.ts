import { childLabelsOf, dependenciesOf, type Function, names } from "@spry/function";
import { type ConfigMap } from "@spry/kube";
import { type DesiredChild } from "../../children.ts";

/** The inline source, as the build Job mounts it. */
export function desiredConfigMap(fn: Function): ConfigMap & DesiredChild {
  const { name = "", namespace = "" } = fn.metadata;
  return {
    metadata: { name: names.configMap(name), namespace, labels: childLabelsOf(fn) },
    data: { source: fn.spec.source.inline?.source ?? "", dependencies: dependenciesOf(fn) },
  };
}
