import { X509Certificate } from "node:crypto";
import { type FieldErrors } from "../../field-errors.ts";
import { checkName } from "../../resources/validation/formats.ts";
import { builtin } from "../../schema/schema.ts";
import { type ApiService, type ApiServiceSpec } from "./api-service.ts";

/** More than any bundle of authorities. */
const maxBundleBytes = 256 * 1024;

/** `kube-aggregator/pkg/apis/apiregistration/validation`; what is stored here cannot be handed to a Service. */
export function validateApiService(
  { metadata, spec }: ApiService,
  errors: FieldErrors,
  _old: unknown,
  subresource: string,
): void {
  if (subresource === "status") return;
  const { group = "", version = "", service, caBundle, insecureSkipTLSVerify } = spec;
  const name = `${version}.${group}`;
  if (metadata.name !== name) {
    const detail = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(name)}`;
    errors.invalid("metadata.name", metadata.name, detail);
  }
  if (group) checkName(group, "subdomain", "spec.group", errors);
  else if (version !== "v1") {
    const detail = "only v1 may have an empty group and it better be legacy kube";
    errors.required("spec.group", detail);
  }
  checkName(version, "service", "spec.version", errors);
  checkPriority("groupPriorityMinimum", spec.groupPriorityMinimum ?? 0, 20_000, errors);
  checkPriority("versionPriority", spec.versionPriority ?? 0, 1000, errors);
  if (service) return validateService(spec, errors);
  if (caBundle) {
    const size = `${Buffer.from(caBundle, "base64").length} bytes`;
    errors.invalid("spec.caBundle", size, "local APIServices may not have a caBundle");
  }
  if (insecureSkipTLSVerify) {
    const detail = "local APIServices may not have insecureSkipTLSVerify";
    errors.invalid("spec.insecureSkipTLSVerify", true, detail);
  }
}

function checkPriority(field: string, value: number, most: number, errors: FieldErrors): void {
  if (value > 0 && value <= most) return;
  errors.invalid(`spec.${field}`, value, `must be positive and less than ${most}`);
}

function validateService(spec: ApiServiceSpec, errors: FieldErrors): void {
  const { group = "", version = "", service, caBundle, insecureSkipTLSVerify } = spec;
  const { namespace, name, port = 0 } = service ?? {};
  if (!namespace) errors.required("spec.service.namespace");
  if (!name) errors.required("spec.service.name");
  if (port < 1 || port > 65_535) {
    const detail = "port is not valid: must be between 1 and 65535, inclusive";
    errors.invalid("spec.service.port", port, detail);
  }
  if (insecureSkipTLSVerify && caBundle) {
    const detail = "may not be true if caBundle is present";
    errors.invalid("spec.insecureSkipTLSVerify", true, detail);
  }
  if (caBundle && caBundle.length > maxBundleBytes) errors.tooLong("spec.caBundle", maxBundleBytes);
  else if (caBundle && !insecureSkipTLSVerify && !isBundle(caBundle))
    errors.broken("spec.caBundle", "unable to load root certificates: no valid certificate in PEM");
  const isOwn = [...builtin.groupVersions, ...builtin.reviews].some(
    (each) => each.group === group && each.version === version,
  );
  if (isOwn) errors.forbidden("spec.service", "this group and version is served by Spry itself");
}

function isBundle(base64: string): boolean {
  try {
    return new X509Certificate(Buffer.from(base64, "base64")).subject !== undefined;
  } catch {
    return false;
  }
}
