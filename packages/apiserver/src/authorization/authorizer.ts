import { StatusError } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { type Attributes } from "./attributes.ts";
import { type PolicyRule, ruleAllows } from "./policy-rule.ts";
import { type RuleResolver } from "./rule-resolver.ts";

export interface Decision {
  allowed: boolean;
  /** Which binding allows it, or what is wrong with a binding that might; often empty. */
  reason: string;
}

/** Its members may do everything, whatever roles there are: a way back in. */
export const administrators = "system:masters";

/** Decides by roles and bindings (`plugin/pkg/auth/authorizer/rbac`). */
export class Authorizer {
  readonly resolver: RuleResolver;

  constructor(resolver: RuleResolver) {
    this.resolver = resolver;
  }

  decide(attributes: Attributes): Decision {
    const { user } = attributes;
    if (user.groups.includes(administrators)) return { allowed: true, reason: "" };
    const namespace = "path" in attributes ? "" : attributes.namespace;
    const problems = new Set<string>();
    for (const found of this.resolver.rulesFor(user, namespace)) {
      if ("problem" in found) problems.add(found.problem);
      else if (ruleAllows(found.rule, attributes)) {
        return { allowed: true, reason: `RBAC: allowed by ${found.source}` };
      }
    }
    const list = [...problems];
    const errors = list.length > 1 ? `[${list.join(", ")}]` : list.join("");
    return { allowed: false, reason: errors && `RBAC: ${errors}` };
  }

  /** Throws a `StatusError` 403, in Kubernetes' words, unless the user may do it. */
  require(attributes: Attributes): void {
    const { allowed, reason } = this.decide(attributes);
    if (!allowed) throw denial(attributes, reason);
  }

  /** Every rule that applies to the user in the namespace, and what is wrong with their bindings. */
  rulesFor(user: UserInfo, namespace: string): { rules: PolicyRule[]; problems: string[] } {
    const rules: PolicyRule[] = [];
    const problems = new Set<string>();
    for (const found of this.resolver.rulesFor(user, namespace)) {
      if ("problem" in found) problems.add(found.problem);
      else rules.push(found.rule);
    }
    return { rules, problems: [...problems] };
  }
}

/** `endpoints/handlers/responsewriters`: the sentence that people and tools know. */
export function denial(attributes: Attributes, reason = ""): StatusError {
  const { verb, user } = attributes;
  const who = `User ${quoted(user.name)} cannot ${verb}`;
  const because = reason && `: ${reason}`;
  if ("path" in attributes) {
    return new StatusError({
      code: 403,
      message: `forbidden: ${escaped(`${who} path ${quoted(attributes.path)}`)}${because}`,
      details: {},
    });
  }
  const { group, resource, subresource, namespace, name } = attributes;
  const kind = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace ${quoted(namespace)}` : "at the cluster scope";
  const sentence = `${who} resource ${quoted(kind)} in API group ${quoted(group)} ${where}`;
  const target = group ? `${resource}.${group}` : resource;
  return new StatusError({
    code: 403,
    message: `${target}${name && ` ${quoted(name)}`} is forbidden: ${escaped(sentence)}${because}`,
    details: { ...(name && { name }), ...(group && { group }), kind: resource },
  });
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Names come from outside, and an error may be looked at in a browser. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
