import { type Logger } from "@spry/kube";
import { forbidden, ownMessageOf } from "../../errors.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, namespaceOf, nameOf } from "../attributes.ts";
import { type Bindings, Budget, evaluate } from "../expressions/expression.ts";
import { meetsConditions } from "../expressions/match-conditions.ts";
import { celAuthorizer, type Decider } from "../expressions/cel-authorizer.ts";
import { type Matcher } from "../matching.ts";
import { type ObjectVersions } from "../object-versions.ts";
import { policyBindings, withVariables } from "./evaluation.ts";
import { type ParamSource } from "./params.ts";
import {
  type BindingSpec,
  type BoundPolicy,
  boundPolicies,
  criteriaOf,
  type Validation,
  type ValidatingPolicySpec,
} from "./policy.ts";

const maxMessageLength = 5 * 1024;
const maxAuditValue = 10 * 1024;
const codes: Record<string, number> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
};

type Policy = BoundPolicy<ValidatingPolicySpec>;

/** Why a policy says no; without a reason it could not be evaluated. */
interface Denial {
  policy: string;
  binding?: string;
  message: string;
  reason?: string | undefined;
}

export interface PolicyContext {
  store: Store;
  matcher: Matcher;
  versions: ObjectVersions;
  params: ParamSource;
  authorizer: Decider;
  log: Logger;
}

/** ValidatingAdmissionPolicies (`k8s.io/apiserver/pkg/admission/plugin/policy/validating`). */
export class ValidatingPolicies {
  readonly #context: PolicyContext;

  constructor(context: PolicyContext) {
    this.#context = context;
  }

  /** Throws the first denial; all others are only evaluated for their warnings. */
  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { type, name } = attributes.request;
    if (type.group === "admissionregistration.k8s.io") return;
    const policies = boundPolicies<ValidatingPolicySpec>(this.#context.store, "validating");
    const denials: Denial[] = [];
    for (const policy of policies) denials.push(...(await this.#deny(policy, attributes)));
    const [first] = denials;
    if (!first) return;
    const { policy, binding, message, reason = "Invalid" } = first;
    const by = binding === undefined ? "" : ` with binding '${binding}'`;
    const told = `ValidatingAdmissionPolicy '${policy}'${by} denied request: ${message}`;
    const error = forbidden(type, nameOf(attributes) || name, told, [{ message: told }]);
    Object.assign(error.status, { reason, code: codes[reason] ?? 422 });
    throw error;
  }

  async #deny(policy: Policy, attributes: AdmissionAttributes): Promise<Denial[]> {
    const { matcher, versions, params } = this.#context;
    const { name, spec } = policy;
    const type = matcher.match(criteriaOf(spec.matchConstraints, false), attributes);
    if (!type) return [];
    const denials: Denial[] = [];
    for (const binding of policy.bindings) {
      if (binding.spec.matchResources) {
        if (!matcher.match(criteriaOf(binding.spec.matchResources, true), attributes)) continue;
      }
      try {
        const found = await params.collect(
          spec.paramKind,
          binding.spec.paramRef,
          attributes.request.namespace,
        );
        const converted = await versions.attributesIn(attributes, type);
        for (const param of found) {
          const bindings = this.#bindings(converted, type, param);
          denials.push(...this.#evaluate(policy, binding, bindings, attributes));
        }
      } catch (error) {
        if (spec.failurePolicy === "Ignore") continue;
        const message = `failed to configure binding: ${ownMessageOf(error)}`;
        denials.push({ policy: name, binding: binding.name, message });
      }
    }
    return denials;
  }

  #bindings(
    attributes: AdmissionAttributes,
    type: ResourceType,
    param: Parameters<typeof policyBindings>[3],
  ): Bindings {
    const { matcher, authorizer } = this.#context;
    const namespace = namespaceOf(attributes) ? matcher.namespaceFor(attributes) : undefined;
    const access = celAuthorizer(authorizer, attributes);
    return { ...policyBindings(attributes, type, namespace, param, access) };
  }

  #evaluate(
    policy: Policy,
    binding: { name: string; spec: BindingSpec },
    bindings: Bindings,
    { request }: AdmissionAttributes,
  ): Denial[] {
    const { name, spec } = policy;
    const by = { policy: name, binding: binding.name };
    const { validationActions = [] } = binding.spec;
    const outcomes: (Denial | undefined)[] = [];
    try {
      if (!meetsConditions(spec.matchConditions, spec.failurePolicy, () => bindings)) return [];
      const budget = new Budget();
      const all = withVariables(bindings, spec, budget);
      for (const validation of spec.validations ?? []) {
        outcomes.push(outcomeOf(validation, all, budget, spec, by));
      }
      this.#audit(policy, all);
    } catch (error) {
      if (spec.failurePolicy !== "Ignore") outcomes.push({ ...by, message: ownMessageOf(error) });
    }
    const failed = outcomes.filter((each) => each !== undefined);
    if (validationActions.includes("Warn")) {
      for (const { message } of failed) {
        request.warnings.push(
          `Validation failed for ValidatingAdmissionPolicy '${name}' with binding '${binding.name}': ${message}`,
        );
      }
    }
    if (failed.length > 0 && validationActions.includes("Audit")) {
      const messages = failed.map(({ message }) => message.slice(0, maxAuditValue));
      this.#context.log.info({ ...by, messages }, "validation failures of a policy");
    }
    return validationActions.includes("Deny") ? failed : [];
  }

  /** There is no audit log here: they can be read in the server's own. Throws what cannot be evaluated. */
  #audit({ name, spec }: Policy, bindings: Bindings): void {
    if (!spec.auditAnnotations?.length) return;
    const budget = new Budget();
    const annotations: Record<string, string> = {};
    for (const { key, valueExpression } of spec.auditAnnotations) {
      const value = evaluate(valueExpression, bindings, budget);
      if (typeof value === "string" && value.trim()) {
        annotations[`${name}/${key}`] = value.trim().slice(0, maxAuditValue);
      } else if (value !== null && typeof value !== "string") {
        throw new Error(
          `valueExpression '${valueExpression}' resulted in unsupported return type: ${typeof value}. Return type must be either string or null.`,
        );
      }
    }
    this.#context.log.debug({ policy: name, annotations }, "audit annotations of a policy");
  }
}

function outcomeOf(
  validation: Validation,
  bindings: Bindings,
  budget: Budget,
  spec: ValidatingPolicySpec,
  by: Omit<Denial, "message">,
): Denial | undefined {
  try {
    if (evaluate(validation.expression.trim(), bindings, budget) === true) return undefined;
  } catch (error) {
    return spec.failurePolicy === "Ignore" ? undefined : { ...by, message: ownMessageOf(error) };
  }
  const message =
    computedMessage(validation, bindings, budget) ||
    validation.message?.trim() ||
    `failed expression: ${validation.expression.trim()}`;
  return { ...by, message, reason: validation.reason };
}

/** Empty when the expression gives nothing that can be shown. */
function computedMessage(
  { messageExpression }: Validation,
  bindings: Bindings,
  budget: Budget,
): string {
  if (!messageExpression) return "";
  try {
    const value = evaluate(messageExpression, bindings, budget);
    const text = typeof value === "string" ? value.trim() : "";
    return text.length > maxMessageLength || text.includes("\n") ? "" : text;
  } catch {
    return "";
  }
}
