import { type FieldErrors } from "../field-errors.ts";
import { type Rule } from "./matching.ts";

const operations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const scopes = ["*", "Cluster", "Namespaced"];

/** `pkg/apis/admissionregistration/validation`: the rules of webhooks and policies. */
export function validateRule(rule: Rule, path: string, errors: FieldErrors): void {
  const { apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  validateOperations(rule.operations ?? [], `${path}.operations`, errors);
  validateNames(apiGroups, `${path}.apiGroups`, "API groups", errors);
  validateNames(apiVersions, `${path}.apiVersions`, "API versions", errors);
  for (const [index, version] of apiVersions.entries()) {
    if (version === "") errors.required(`${path}.apiVersions[${index}]`);
  }
  validateResources(resources, `${path}.resources`, errors);
  if (scope && !scopes.includes(scope)) errors.unsupported(`${path}.scope`, scope, scopes);
}

function validateOperations(wanted: string[], path: string, errors: FieldErrors): void {
  if (wanted.length === 0) errors.required(path);
  if (wanted.length > 1 && wanted.includes("*")) {
    errors.invalid(path, wanted, "if '*' is present, must not specify other operations");
  }
  for (const [index, operation] of wanted.entries()) {
    if (!operations.includes(operation))
      errors.unsupported(`${path}[${index}]`, operation, operations);
  }
}

function validateNames(names: string[], path: string, what: string, errors: FieldErrors): void {
  if (names.length === 0) errors.required(path);
  if (names.length > 1 && names.includes("*")) {
    errors.invalid(path, names, `if '*' is present, must not specify other ${what}`);
  }
}

function validateResources(resources: string[], path: string, errors: FieldErrors): void {
  if (resources.length === 0) errors.required(path);
  const wildResources = new Set<string>();
  const wildSubresources = new Set<string>();
  for (const [index, each] of resources.entries()) {
    const at = `${path}[${index}]`;
    if (each === "") errors.required(at);
    const slash = each.indexOf("/");
    if (slash < 0) continue;
    const [resource, subresource] = [each.slice(0, slash), each.slice(slash + 1)];
    if (wildSubresources.has(resource)) {
      errors.invalid(at, each, `if '${resource}/*' is present, must not specify ${each}`);
    }
    if (wildResources.has(subresource)) {
      errors.invalid(at, each, `if '*/${subresource}' is present, must not specify ${each}`);
    }
    if (subresource === "*") wildSubresources.add(resource);
    if (resource === "*") wildResources.add(subresource);
  }
  if (resources.length > 1 && resources.includes("*/*")) {
    errors.invalid(path, resources, "if '*/*' is present, must not specify other resources");
  }
  const plain = resources.filter((each) => each !== "" && !each.includes("/"));
  if (plain.includes("*") && plain.at(-1) !== "*") {
    errors.invalid(
      path,
      resources,
      "if '*' is present, must not specify other resources without subresources",
    );
  }
}
