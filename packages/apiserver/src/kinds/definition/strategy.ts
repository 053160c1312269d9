import { type Condition, setCondition } from "@spry/kube";
import { type DefinitionSpec } from "../../resources/catalog.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { validateDefinition } from "./validation.ts";

/** Objects of the kind are removed before the definition is. */
export const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/** Definitions take effect at once: their conditions are part of the write. */
export const definitionStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as DefinitionSpec | undefined;
    if (!spec?.names) return;
    const { kind } = spec.names;
    if (kind) {
      spec.names.singular ||= kind.toLowerCase();
      spec.names.listKind ||= `${kind}List`;
    }
    spec.conversion ??= { strategy: "None" };
    const service = spec.conversion.webhook?.clientConfig?.service;
    if (service) service.port ??= 443;
  },
  prepare(object, { old, now, subresource }) {
    if (subresource === "status") return;
    const spec = object.spec as DefinitionSpec;
    const { metadata } = object;
    if (!old) {
      metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), cleanupFinalizer])];
    }
    const before = old?.status as
      | { conditions?: Condition[]; storedVersions?: string[] }
      | undefined;
    const storage = spec.versions?.find((version) => version.storage)?.name;
    const stored = [...(before?.storedVersions ?? []), ...(storage === undefined ? [] : [storage])];
    const clock = { now: () => Date.parse(now), elapsed: () => 0, after: () => () => {} };
    const established = {
      type: "Established",
      status: "True",
      reason: "InitialNamesAccepted",
      message: "the initial names have been accepted",
    } as const;
    const accepted = {
      type: "NamesAccepted",
      status: "True",
      reason: "NoConflicts",
      message: "no conflicts found",
    } as const;
    object.status = {
      ...before,
      conditions: setCondition(
        setCondition(before?.conditions, accepted, clock),
        established,
        clock,
      ),
      acceptedNames: spec.names,
      storedVersions: [...new Set(stored)],
    };
  },
  validate: validateDefinition,
};
