import { type UnknownObject } from "@spry/kube";
import { ownMessageOf } from "../../errors.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { celValue } from "../../schema/cel-rules.ts";
import { type AdmissionAttributes, isNamespace } from "../attributes.ts";
import { bindingsOf } from "../expressions/bindings.ts";
import { type Bindings, type Budget, evaluate } from "../expressions/expression.ts";
import { type PolicySpec } from "./policy.ts";

/** All that the expressions of a policy can name for one request and one parameter. */
export function policyBindings(
  attributes: AdmissionAttributes,
  type: ResourceType,
  namespace: UnknownObject | undefined,
  param: UnknownObject | null,
  authorizer: unknown,
): Bindings {
  return {
    ...bindingsOf(attributes, type),
    params: celValue(param, undefined),
    namespaceObject: celValue(
      isNamespace(attributes.request.type) ? null : exposedNamespace(namespace),
      undefined,
    ),
    authorizer,
  };
}

/** `variables`, each evaluated when it is first used. */
export function withVariables(bindings: Bindings, spec: PolicySpec, budget: Budget): Bindings {
  const variables: Record<string, unknown> = {};
  const all = { ...bindings, variables };
  for (const { name, expression } of spec.variables ?? []) {
    let value: unknown;
    let isKnown = false;
    Object.defineProperty(variables, name, {
      enumerable: true,
      get() {
        if (isKnown) return value;
        try {
          value = evaluate(expression, all, budget);
        } catch (cause) {
          const problem = ownMessageOf(cause).replace(/^expression '.*' resulted in error: /s, "");
          throw new Error(`composited variable "${name}" fails to evaluate: ${problem}`, { cause });
        }
        isKnown = true;
        return value;
      },
    });
  }
  return all;
}

const exposedMetadata = [
  "name",
  "generateName",
  "namespace",
  "labels",
  "annotations",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "generation",
  "resourceVersion",
  "finalizers",
] as const;

function exposedNamespace(namespace: UnknownObject | undefined): unknown {
  if (!namespace) return null;
  const metadata = Object.fromEntries(
    exposedMetadata
      .filter((field) => namespace.metadata[field] !== undefined)
      .map((field) => [field, namespace.metadata[field]]),
  );
  const { phase } = (namespace.status ?? {}) as { phase?: string };
  return { kind: "Namespace", apiVersion: "v1", metadata, spec: namespace.spec, status: { phase } };
}
