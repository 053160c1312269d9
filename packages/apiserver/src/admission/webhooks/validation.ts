import { type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems } from "../../resources/metadata.ts";
import { validateMatchConditions } from "../expressions/validation.ts";
import { validateRule } from "../rule-validation.ts";
import { validateSelector } from "../selector-validation.ts";
import { type ClientConfig } from "../../resources/webhook-client.ts";
import { type Webhook } from "./webhook.ts";

const reviewVersions = ["v1", "v1beta1"];
const form = "; desired format: https://host[/path]";

/** `pkg/apis/admissionregistration/validation`: webhook configurations of both kinds. */
export function validateWebhookConfiguration(object: UnknownObject, errors: FieldErrors): void {
  const names = new Set<string>();
  for (const [index, webhook] of ((object.webhooks ?? []) as Webhook[]).entries()) {
    const path = `webhooks[${index}]`;
    validateWebhook(webhook, path, errors);
    validateReviewVersions(
      webhook.admissionReviewVersions ?? [],
      `${path}.admissionReviewVersions`,
      errors,
    );
    if (webhook.name && names.has(webhook.name)) errors.duplicate(`${path}.name`, webhook.name);
    names.add(webhook.name);
  }
}

function validateWebhook(webhook: Webhook, path: string, errors: FieldErrors): void {
  const { failurePolicy, matchPolicy, sideEffects, timeoutSeconds, reinvocationPolicy } = webhook;
  validateName(webhook.name, `${path}.name`, errors);
  for (const [index, rule] of (webhook.rules ?? []).entries()) {
    validateRule(rule, `${path}.rules[${index}]`, errors);
  }
  oneOf(failurePolicy, ["Fail", "Ignore"], `${path}.failurePolicy`, errors);
  oneOf(matchPolicy, ["Equivalent", "Exact"], `${path}.matchPolicy`, errors);
  const harmless = ["None", "NoneOnDryRun"];
  if (sideEffects == null) {
    errors.required(`${path}.sideEffects`, `must specify one of ${harmless.join(", ")}`);
  } else oneOf(sideEffects, harmless, `${path}.sideEffects`, errors);
  if (timeoutSeconds !== undefined && (timeoutSeconds < 1 || timeoutSeconds > 30)) {
    errors.invalid(
      `${path}.timeoutSeconds`,
      timeoutSeconds,
      "the timeout value must be between 1 and 30 seconds",
    );
  }
  validateSelector(webhook.namespaceSelector, `${path}.namespaceSelector`, errors);
  validateSelector(webhook.objectSelector, `${path}.objectSelector`, errors);
  oneOf(reinvocationPolicy, ["IfNeeded", "Never"], `${path}.reinvocationPolicy`, errors);
  validateClientConfig(webhook.clientConfig, `${path}.clientConfig`, errors);
  validateMatchConditions(webhook.matchConditions, `${path}.matchConditions`, errors);
}

function oneOf(
  value: string | undefined,
  allowed: string[],
  path: string,
  errors: FieldErrors,
): void {
  if (value !== undefined && !allowed.includes(value)) errors.unsupported(path, value, allowed);
}

function validateName(name: string | undefined, path: string, errors: FieldErrors): void {
  if (!name) return errors.required(path);
  const problems = nameProblems(name, "subdomain");
  if (problems.length > 0) errors.invalid(path, name, problems.join(","));
  else if (name.split(".").length < 3) {
    errors.invalid(path, name, "should be a domain with at least three segments separated by dots");
  }
}

export function validateReviewVersions(
  versions: string[],
  path: string,
  errors: FieldErrors,
): void {
  if (versions.length === 0) {
    return errors.required(path, `must specify one of ${reviewVersions.join(", ")}`);
  }
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    if (seen.has(version)) {
      errors.invalid(`${path}[${index}]`, version, "duplicate version");
      continue;
    }
    seen.add(version);
    for (const problem of nameProblems(version, "service")) {
      errors.invalid(`${path}[${index}]`, version, problem);
    }
  }
  if (!versions.some((each) => reviewVersions.includes(each))) {
    errors.invalid(path, versions, `must include at least one of ${reviewVersions.join(", ")}`);
  }
}

/** Also of the conversion webhooks of CustomResourceDefinitions. */
export function validateClientConfig(
  config: ClientConfig | undefined,
  path: string,
  errors: FieldErrors,
): void {
  const { url, service } = config ?? {};
  if ((url === undefined) === (service === undefined)) {
    errors.required(path, "exactly one of url or service is required");
  } else if (url !== undefined) validateUrl(url, `${path}.url`, errors);
  else if (service) validateService(service, `${path}.service`, errors);
}

function validateUrl(text: string, path: string, errors: FieldErrors): void {
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1]?.toLowerCase() ?? "";
  if (scheme !== "https") {
    errors.invalid(path, scheme, `'https' is the only allowed URL scheme${form}`);
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url?.host || !text.includes("//")) errors.invalid(path, "", `host must be specified${form}`);
  if (url?.username) {
    errors.invalid(path, url.username, "user information is not permitted in the URL");
  }
  if (url && url.hash.length > 1) {
    errors.invalid(path, url.hash.slice(1), "fragments are not permitted in the URL");
  }
  if (url && url.search.length > 1) {
    errors.invalid(path, url.search.slice(1), "query parameters are not permitted in the URL");
  }
}

function validateService(
  { name, namespace, path: urlPath, port = 443 }: NonNullable<ClientConfig["service"]>,
  path: string,
  errors: FieldErrors,
): void {
  if (!name) errors.required(`${path}.name`);
  if (!namespace) errors.required(`${path}.namespace`);
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    errors.invalid(
      `${path}.port`,
      port,
      "port is not valid: must be between 1 and 65535, inclusive",
    );
  }
  if (!urlPath || urlPath === "/") return;
  const at = `${path}.path`;
  if (urlPath === "//") return errors.invalid(at, urlPath, "segment[0] may not be empty");
  if (!urlPath.startsWith("/")) errors.invalid(at, urlPath, "must start with a '/'");
  for (const [index, step] of urlPath.slice(1).replace(/\/$/, "").split("/").entries()) {
    if (step === "") errors.invalid(at, urlPath, `segment[${index}] may not be empty`);
    else {
      for (const problem of nameProblems(step, "subdomain")) {
        errors.invalid(at, urlPath, `segment[${index}]: ${problem}`);
      }
    }
  }
}
