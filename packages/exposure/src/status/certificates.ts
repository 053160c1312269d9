import { createPrivateKey, X509Certificate } from "node:crypto";
import { type IstioGateway } from "@spry/function";
import { type ObjectKey, type Secret } from "@spry/kube";
import { isHttps } from "../routes/gateway-hosts.ts";
import { certificateName } from "../routes/routes-of.ts";

/** What a Secret of a Gateway holds, and what is wrong with it. */
export interface InspectedCertificate {
  /** PEM; undefined if it cannot be served. */
  pair?: { crt: Buffer; key: Buffer };
  certificate?: X509Certificate;
  /** A sentence; an expired certificate is served all the same, and clients refuse it. */
  problem?: string;
  /** When that may change by itself, in milliseconds since the epoch. */
  changesAt?: number;
}

/** Of one pair; a chain with an RSA key has some 8 KiB. */
const maxPairBytes = 64 * 1024;
/** Of the Secret with all of them: a Secret has up to 1 MiB. */
const maxTotalBytes = 900 * 1024;

/** A `kubernetes.io/tls` Secret, as it is at `now`. */
export function inspectCertificate(secret: Secret, now: number): InspectedCertificate {
  let known = parsed.get(secret);
  if (!known) parsed.set(secret, (known = parse(secret)));
  const { certificate } = known;
  if (!certificate) return known;
  const what = `Secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  return { ...known, ...validityOf(certificate, what, now) };
}

/** Objects do not change: what takes milliseconds is done once for each. */
const parsed = new WeakMap<Secret, InspectedCertificate>();

function parse(secret: Secret): InspectedCertificate {
  const what = `Secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  const bytes = (key: string) => Buffer.from(secret.data?.[key] ?? "", "base64");
  const crt = bytes("tls.crt");
  const key = bytes("tls.key");
  const missing = [crt.length === 0 && "tls.crt", key.length === 0 && "tls.key"].filter(Boolean);
  if (missing.length > 0) return { problem: `${what} has no ${missing.join(" and no ")}` };
  if (crt.length + key.length > maxPairBytes)
    return { problem: `${what} exceeds the size of a certificate (${maxPairBytes} bytes)` };
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(crt);
  } catch {
    return { problem: `tls.crt of ${what} is not a certificate in PEM` };
  }
  try {
    if (!certificate.checkPrivateKey(createPrivateKey(key)))
      return { problem: `tls.key of ${what} is not the key of its certificate` };
  } catch {
    return { problem: `tls.key of ${what} is not a private key in PEM` };
  }
  return { pair: { crt, key }, certificate };
}

function validityOf(certificate: X509Certificate, what: string, now: number) {
  const { validFromDate: from, validToDate: to } = certificate;
  if (now < from.getTime()) {
    const problem = `the certificate in ${what} is valid only from ${from.toISOString()}`;
    return { problem, changesAt: from.getTime() };
  }
  if (now > to.getTime())
    return { problem: `the certificate in ${what} expired at ${to.toISOString()}` };
  return { changesAt: to.getTime() };
}

/** Whether the certificate is one for this host; of `*.example.com` for every name below. */
export function isForHost(certificate: X509Certificate, host: string): boolean {
  return certificate.checkHost(host.replace(/^\*/, "any")) !== undefined;
}

export interface CollectedCertificates {
  /** Of the Secret for the gateway, in base64. */
  data: Record<string, string>;
  /** By the certificate's name (`certificateName`). */
  inspected: Map<string, InspectedCertificate>;
  changesAt: number;
}

/** Istio looks where its ingress gateway runs; certificates of the original's tutorials are there. */
const ingressNamespace = "istio-system";

/**
 * The certificates of these Gateways, the oldest Gateways' first: from the Gateway's own namespace, or else from
 * `istio-system`.
 */
export function collectCertificates(
  gateways: Iterable<IstioGateway>,
  secretOf: (key: ObjectKey) => Secret | undefined,
  now: number,
): CollectedCertificates {
  const data: Record<string, string> = {};
  const inspected = new Map<string, InspectedCertificate>();
  let changesAt = Number.POSITIVE_INFINITY;
  let total = 0;
  for (const gateway of [...gateways].sort(byAge)) {
    for (const credential of credentialsOf(gateway)) {
      const name = certificateName(gateway, credential);
      if (inspected.has(name)) continue;
      const { namespace = "" } = gateway.metadata;
      const secret = [namespace, ingressNamespace]
        .map((each) => secretOf(`${each}/${credential}`))
        .find((each) => each !== undefined);
      const problem = `Secret ${namespace}/${credential} of type kubernetes.io/tls does not exist`;
      const result = secret ? inspectCertificate(secret, now) : { problem };
      inspected.set(name, result);
      changesAt = Math.min(changesAt, result.changesAt ?? Number.POSITIVE_INFINITY);
      if (!result.pair) continue;
      total += result.pair.crt.length + result.pair.key.length;
      if (total > maxTotalBytes) {
        inspected.set(name, {
          problem: `the certificates of all Gateways exceed ${maxTotalBytes} bytes: remove some Gateways`,
        });
        continue;
      }
      data[`${name}.crt`] = result.pair.crt.toString("base64");
      data[`${name}.key`] = result.pair.key.toString("base64");
    }
  }
  return { data, inspected, changesAt };
}

function credentialsOf(gateway: IstioGateway): string[] {
  const servers = (gateway.spec?.servers ?? []).filter(isHttps);
  return [...new Set(servers.flatMap(({ tls }) => tls?.credentialName ?? []))];
}

function byAge(one: IstioGateway, other: IstioGateway): number {
  const order = ({ metadata }: IstioGateway) =>
    `${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
  return order(one) < order(other) ? -1 : 1;
}
