import { createHash, X509Certificate } from "node:crypto";
import { ownCertificatePrefix } from "@spry/function";

/** Signs certificates for hosts whose Gateways name none. */
export interface HostAuthority {
  /** Its own certificate, PEM; undefined before it has issued any. */
  certificate(): string | undefined;
  /** One certificate for all of these hosts, PEM. */
  issue(hosts: readonly string[]): Promise<{ crt: string; key: string }>;
}

/** Hosts share certificates, so that thousands of them fit into one Secret, and a new one makes few others new. */
const certificates = 16;
const maxHosts = 100;
const retryMs = 10_000;
const renewBeforeMs = 30 * 86_400_000;

/**
 * Entries of the Secret of collected certificates for these hosts, in base64. What is there already, fits and lasts, is
 * kept. `changesAt` is when one has to be renewed.
 */
export async function certificatesOfOwn(
  hosts: readonly string[],
  authority: HostAuthority,
  present: Readonly<Record<string, string>>,
  now: number,
  onFailure: (error: unknown) => void,
): Promise<{ data: Record<string, string>; changesAt: number }> {
  const groups = new Map<string, string[]>();
  for (const host of [...hosts].sort()) {
    const [first = 0] = createHash("sha256").update(host).digest();
    const name = `${ownCertificatePrefix}${first % certificates}`;
    const group = groups.get(name) ?? [];
    if (group.length < maxHosts) groups.set(name, [...group, host]);
  }
  const data: Record<string, string> = {};
  let changesAt = Number.POSITIVE_INFINITY;
  for (const [name, group] of groups) {
    const [crtEntry, keyEntry] = [`${name}.crt`, `${name}.key`];
    let crt = present[crtEntry];
    let key = present[keyEntry];
    let renewAt = crt && key ? renewalOf(crt, group, authority.certificate()) : 0;
    if (renewAt <= now) {
      try {
        const issued = await authority.issue(group);
        crt = Buffer.from(issued.crt).toString("base64");
        key = Buffer.from(issued.key).toString("base64");
        renewAt = renewalOf(crt, group, authority.certificate());
      } catch (error) {
        onFailure(error);
        renewAt = now + retryMs;
      }
    }
    if (crt && key) {
      data[crtEntry] = crt;
      data[keyEntry] = key;
    }
    changesAt = Math.min(changesAt, renewAt);
  }
  return { data, changesAt };
}

/** When a certificate has to be renewed, in milliseconds since the epoch; 0 for one that is not for these hosts. */
function renewalOf(encoded: string, hosts: readonly string[], signer: string | undefined): number {
  try {
    const certificate = new X509Certificate(Buffer.from(encoded, "base64"));
    const names = (certificate.subjectAltName ?? "").split(", ").sort().join();
    if (
      names !==
      hosts
        .map((host) => `DNS:${host}`)
        .sort()
        .join()
    )
      return 0;
    if (signer && !certificate.verify(new X509Certificate(signer).publicKey)) return 0;
    return certificate.validToDate.getTime() - renewBeforeMs;
  } catch {
    return 0;
  }
}
