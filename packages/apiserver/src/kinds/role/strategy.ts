import { deepEqual } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems } from "../../resources/metadata.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { type PolicyRule } from "../../authorization/policy-rule.ts";
import { rbacGroup, type RoleRef, type Subject } from "../../authorization/rule-resolver.ts";

/** `pkg/apis/rbac/validation`. */
export const roleStrategy: Strategy = {
  nameRule: "path",
  validate(object, errors) {
    checkRules(object.rules, true, errors);
  },
};

export const clusterRoleStrategy: Strategy = {
  nameRule: "path",
  validate(object, errors) {
    checkRules(object.rules, false, errors);
    const aggregation = object.aggregationRule as { clusterRoleSelectors?: unknown[] } | undefined;
    if (aggregation && !aggregation.clusterRoleSelectors?.length) {
      errors.required(
        "aggregationRule.clusterRoleSelectors",
        "at least one clusterRoleSelector required if aggregationRule is non-nil",
      );
    }
  },
};

export const roleBindingStrategy: Strategy = bindingStrategy(["Role", "ClusterRole"]);
export const clusterRoleBindingStrategy: Strategy = bindingStrategy(["ClusterRole"]);

function bindingStrategy(roleKinds: string[]): Strategy {
  const isNamespaced = roleKinds.includes("Role");
  return {
    nameRule: "path",
    defaults(object) {
      const { roleRef, subjects } = object as { roleRef?: RoleRef; subjects?: Subject[] | null };
      if (roleRef) roleRef.apiGroup ||= rbacGroup;
      for (const subject of subjects ?? []) {
        if (["User", "Group"].includes(subject.kind)) subject.apiGroup ||= rbacGroup;
      }
    },
    validate(object, errors, old) {
      const roleRef = { apiGroup: rbacGroup, kind: "", name: "", ...(object.roleRef as object) };
      checkRoleRef(roleRef, roleKinds, errors);
      for (const [index, subject] of ((object.subjects as Subject[] | null) ?? []).entries()) {
        checkSubject(subject, isNamespaced, `subjects[${index}]`, errors);
      }
      if (old && !deepEqual(old.roleRef, object.roleRef)) {
        const { apiGroup: APIGroup, kind: Kind, name: Name } = roleRef;
        errors.invalid("roleRef", { APIGroup, Kind, Name }, "cannot change roleRef");
      }
    },
  };
}

function checkRules(rules: unknown, isNamespaced: boolean, errors: FieldErrors): void {
  for (const [index, rule] of ((rules as PolicyRule[] | null | undefined) ?? []).entries()) {
    const path = `rules[${index}]`;
    const {
      verbs,
      apiGroups = [],
      resources = [],
      resourceNames = [],
      nonResourceURLs = [],
    } = rule;
    if (!verbs?.length) errors.required(`${path}.verbs`, "verbs must contain at least one value");
    if (nonResourceURLs.length > 0) {
      const field = `${path}.nonResourceURLs`;
      if (isNamespaced) {
        const detail = "namespaced rules cannot apply to non-resource URLs";
        errors.invalid(field, nonResourceURLs, detail);
      }
      if (apiGroups.length + resources.length + resourceNames.length > 0) {
        const detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.invalid(field, nonResourceURLs, detail);
      }
      continue;
    }
    if (apiGroups.length === 0) {
      errors.required(`${path}.apiGroups`, "resource rules must supply at least one api group");
    }
    if (resources.length === 0) {
      errors.required(`${path}.resources`, "resource rules must supply at least one resource");
    }
  }
}

function checkRoleRef(
  { apiGroup, kind, name }: RoleRef,
  kinds: string[],
  errors: FieldErrors,
): void {
  if (apiGroup !== rbacGroup) errors.unsupported("roleRef.apiGroup", apiGroup, [rbacGroup]);
  if (!kinds.includes(kind)) errors.unsupported("roleRef.kind", kind, kinds);
  if (!name) return errors.required("roleRef.name");
  for (const problem of nameProblems(name, "path")) errors.invalid("roleRef.name", name, problem);
}

function checkSubject(
  { kind = "", name = "", apiGroup = "", namespace = "" }: Partial<Subject>,
  isNamespaced: boolean,
  path: string,
  errors: FieldErrors,
): void {
  if (!name) errors.required(`${path}.name`);
  if (kind === "ServiceAccount") {
    for (const problem of name ? nameProblems(name, "subdomain") : []) {
      errors.invalid(`${path}.name`, name, problem);
    }
    if (apiGroup) errors.unsupported(`${path}.apiGroup`, apiGroup, [""]);
    if (!isNamespaced && !namespace) errors.required(`${path}.namespace`);
    return;
  }
  if (kind === "User" || kind === "Group") {
    if (apiGroup !== rbacGroup) errors.unsupported(`${path}.apiGroup`, apiGroup, [rbacGroup]);
    return;
  }
  errors.unsupported(`${path}.kind`, kind, ["ServiceAccount", "User", "Group"]);
}
