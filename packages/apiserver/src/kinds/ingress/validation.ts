import { isIP } from "node:net";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems } from "../../resources/metadata.ts";
import { checkName, checkPort, checkPortName } from "../../resources/validation/formats.ts";

/** `pkg/apis/networking/validation`, Ingresses. */

export interface IngressSpec {
  defaultBackend?: Backend;
  ingressClassName?: string;
  rules?: { host?: string; http?: { paths?: IngressPath[] | null } }[];
  tls?: { hosts?: string[]; secretName?: string }[];
}
interface IngressPath {
  path?: string;
  pathType?: string | null;
  backend?: Backend;
}
interface Backend {
  service?: { name?: string; port?: { name?: string; number?: number } };
  resource?: { apiGroup?: string; kind?: string; name?: string };
}

const badSequences = ["//", "/./", "/../", "%2f", "%2F"];
const badSuffixes = ["/..", "/."];
const pathTypes = ["Exact", "ImplementationSpecific", "Prefix"];
const wildcardRule = String.raw`a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;

export function validateIngress(spec: IngressSpec, errors: FieldErrors): void {
  const { defaultBackend, rules = [], tls = [], ingressClassName } = spec;
  if (rules.length === 0 && !defaultBackend)
    errors.invalid("spec", null, "either `defaultBackend` or `rules` must be specified");
  if (defaultBackend) validateBackend(defaultBackend, "spec.defaultBackend", errors);
  for (const [index, { host, http }] of rules.entries()) {
    const path = `spec.rules[${index}]`;
    if (host) {
      if (isIP(host)) errors.invalid(`${path}.host`, host, "must be a DNS name, not an IP address");
      checkHost(host, `${path}.host`, errors);
    }
    if (http && !http.paths?.length) errors.required(`${path}.http.paths`);
    for (const [at, each] of (http?.paths ?? []).entries())
      validatePath(each, `${path}.http.paths[${at}]`, errors);
  }
  for (const [index, { hosts = [], secretName = "" }] of tls.entries()) {
    const path = `spec.tls[${index}]`;
    for (const [at, host] of hosts.entries()) checkHost(host, `${path}.hosts[${at}]`, errors);
    if (secretName) checkName(secretName, "subdomain", `${path}.secretName`, errors);
  }
  if (ingressClassName !== undefined)
    checkName(ingressClassName, "subdomain", "spec.ingressClassName", errors);
}

function checkHost(host: string, path: string, errors: FieldErrors): void {
  if (!host.includes("*")) return checkName(host, "subdomain", path, errors);
  const isGood = host.startsWith("*.") && nameProblems(host.slice(2), "subdomain").length === 0;
  if (!isGood) errors.invalid(path, host, wildcardRule);
}

function validatePath(
  { path = "", pathType, backend = {} }: IngressPath,
  at: string,
  errors: FieldErrors,
): void {
  if (!pathType) return errors.required(`${at}.pathType`, "pathType must be specified");
  if (pathType === "Exact" || pathType === "Prefix") {
    if (!path.startsWith("/")) errors.invalid(`${at}.path`, path, "must be an absolute path");
    for (const each of badSequences)
      if (path.includes(each)) errors.invalid(`${at}.path`, path, `must not contain '${each}'`);
    for (const each of badSuffixes)
      if (path.endsWith(each)) errors.invalid(`${at}.path`, path, `cannot end with '${each}'`);
  } else if (pathType === "ImplementationSpecific") {
    if (path && !path.startsWith("/"))
      errors.invalid(`${at}.path`, path, "must be an absolute path");
  } else errors.unsupported(`${at}.pathType`, pathType, pathTypes);
  validateBackend(backend, `${at}.backend`, errors);
}

function validateBackend({ service, resource }: Backend, path: string, errors: FieldErrors): void {
  if (service && resource)
    return errors.invalid(path, "", "cannot set both resource and service backends");
  if (resource) {
    for (const field of ["kind", "name"] as const)
      if (!resource[field]) errors.required(`${path}.resource.${field}`);
    return;
  }
  if (!service) return errors.invalid(path, "", "resource or service backend is required");
  if (!service.name) errors.required(`${path}.service.name`);
  else checkName(service.name, "label", `${path}.service.name`, errors);
  const { name, number } = service.port ?? {};
  if (name && number) errors.invalid(path, "", "cannot set both port name & port number");
  else if (name) checkPortName(name, `${path}.service.port.name`, errors);
  else if (number) checkPort(number, `${path}.service.port.number`, errors);
  else errors.required(path, "port name or number is required");
}
