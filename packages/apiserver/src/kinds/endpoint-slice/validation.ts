import { isIP } from "node:net";
import { type FieldErrors } from "../../field-errors.ts";
import {
  checkAddress,
  checkName,
  checkOneOf,
  checkProtocol,
} from "../../resources/validation/formats.ts";

/** `pkg/apis/discovery/validation`. */

export interface EndpointSlice {
  addressType?: string;
  endpoints?: { addresses?: string[] | null; hostname?: string; nodeName?: string }[] | null;
  ports?: { name?: string; protocol?: string }[] | null;
}

const addressTypes = ["FQDN", "IPv4", "IPv6"];
const maxEndpoints = 1000;
const maxAddresses = 100;
const maxPorts = 100;

/** Loopback addresses are let through: those are what Pods have on one machine. */
export function validateSlice(
  { addressType = "", endpoints, ports }: EndpointSlice,
  errors: FieldErrors,
  oldType: string | undefined,
): void {
  if (addressType === "") errors.required("addressType");
  else checkOneOf(addressType, addressTypes, "addressType", errors);
  if (ports && ports.length > maxPorts) errors.tooMany("ports", ports.length, maxPorts);
  else validatePorts(ports ?? [], errors);
  if (endpoints && endpoints.length > maxEndpoints)
    errors.tooMany("endpoints", endpoints.length, maxEndpoints);
  else validateEndpoints(endpoints ?? [], addressType, errors);
  if (oldType !== undefined && oldType !== addressType)
    errors.invalid("addressType", addressType, "field is immutable");
}

function validatePorts(ports: NonNullable<EndpointSlice["ports"]>, errors: FieldErrors): void {
  const names = new Set<string>();
  for (const [index, { name = "", protocol }] of ports.entries()) {
    const path = `ports[${index}]`;
    if (name) checkName(name, "label", `${path}.name`, errors);
    if (names.has(name)) errors.duplicate(`${path}.name`, name);
    names.add(name);
    checkProtocol(protocol, `${path}.protocol`, errors);
  }
}

function validateEndpoints(
  endpoints: NonNullable<EndpointSlice["endpoints"]>,
  type: string,
  errors: FieldErrors,
): void {
  for (const [index, { addresses, hostname, nodeName }] of endpoints.entries()) {
    const path = `endpoints[${index}]`;
    const all = `${path}.addresses`;
    if (!addresses?.length) errors.required(all, "must contain at least 1 address");
    else if (addresses.length > maxAddresses) errors.tooMany(all, addresses.length, maxAddresses);
    for (const [place, address] of (addresses ?? []).entries())
      validateAddress(address, type, all, place, errors);
    if (nodeName !== undefined) checkName(nodeName, "subdomain", `${path}.nodeName`, errors);
    if (hostname !== undefined) checkName(hostname, "label", `${path}.hostname`, errors);
  }
}

const reserved: [RegExp, (address: string) => string][] = [
  [/^0\.0\.0\.0$|^::$/, (address) => `may not be unspecified (${address})`],
  [
    /^169\.254\.|^fe[89ab]/i,
    () => "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
  ],
  [
    /^224\.0\.0\.|^ff02:/i,
    () => "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
  ],
];

function validateAddress(
  address: string,
  type: string,
  all: string,
  index: number,
  errors: FieldErrors,
): void {
  const path = `${all}[${index}]`;
  if (type === "FQDN") return checkName(address, "subdomain", path, errors);
  if (type !== "IPv4" && type !== "IPv6") return;
  const version = isIP(address);
  if (version === 0) return checkAddress(address, path, errors);
  if (type !== `IPv${version}`) errors.invalid(all, address, `must be an ${type} address`);
  for (const [range, problem] of reserved)
    if (range.test(address)) errors.invalid(path, address, problem(address));
}
