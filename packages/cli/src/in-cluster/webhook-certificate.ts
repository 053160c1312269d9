/**
 * The certificate of what the API server calls, first of all the webhooks: an authority of our own and what it signs, kept in a
 * Secret. The leader issues and renews; every replica serves what the Secret holds, and takes over what is new at once.
 */
import { X509Certificate } from "node:crypto";
import {
  type Clock,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  type Logger,
  resources,
  type Secret,
  systemClock,
} from "@spry/kube";

export const webhookSecretName = "serverless-webhook";
export const webhookServiceName = "serverless-webhook";

const day = 24 * 3600 * 1000;
const lifetime = { authority: 3650 * day, leaf: 90 * day };
/** How long before its end a certificate is replaced. */
const renewal = { authority: 365 * day, leaf: 30 * day };

export interface WebhookCertificate {
  /** PEM. */
  cert: string;
  key: string;
  /** PEM of the authorities that may have signed it, the newest first. */
  ca: string;
}

/** What the Secret holds; undefined while it is not whole. */
export function certificateIn(secret: Secret | undefined): WebhookCertificate | undefined {
  const text = (key: string) => Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
  const found = { cert: text("tls.crt"), key: text("tls.key"), ca: text("ca.crt") };
  return found.cert && found.key && found.ca ? found : undefined;
}

/**
 * Issues what is missing or near its end, and stores it. Two that try at once end up with the same Secret.
 * An authority that is replaced stays in `ca.crt` until it ends: who trusts it trusts its certificates.
 */
export async function ensureWebhookCertificate(options: {
  client: KubeClient;
  namespace: string;
  /** Of the Secret, and of the Service that is served. */
  name?: string;
  log: Logger;
  clock?: Clock;
  /** PEM of the authorities of a Secret that is gone: replicas serve what that held for a moment more. */
  trusted?: string;
  /** Called with the authorities before a new certificate is stored, and with that served. */
  announce?: (authorities: string) => Promise<void>;
}): Promise<WebhookCertificate> {
  const { client, namespace, log, clock = systemClock, trusted = "", announce } = options;
  const { name = webhookSecretName } = options;
  const target = { namespace, name };
  for (;;) {
    const present = await client.get(resources.secrets, target).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const certificate = certificateIn(present);
    if (certificate && isGood(certificate, clock.now())) return certificate;
    const before = present ?? { metadata: {}, data: { "ca.crt": encode(trusted) } };
    const data = await issue(before, target, clock.now());
    await announce?.(Buffer.from(data["ca.crt"] ?? "", "base64").toString());
    const secret: Secret = { metadata: { ...target }, type: "Opaque", data };
    const version = present?.metadata.resourceVersion;
    if (version) secret.metadata.resourceVersion = version;
    try {
      if (present) await client.update(resources.secrets, secret);
      else await client.create(resources.secrets, secret);
      log.info({ secret: name }, "issued a certificate for the API server's requests");
    } catch (error) {
      // Another replica was faster: the stored certificate counts now.
      if (!isConflict(error) && !isAlreadyExists(error)) throw error;
    }
  }
}

const encode = (value: string): string => Buffer.from(value).toString("base64");

const endOf = (pem: string): number => Date.parse(new X509Certificate(pem).validTo);

function isGood({ cert, ca }: WebhookCertificate, now: number): boolean {
  try {
    return endOf(cert) - now > renewal.leaf && endOf(ca) - now > renewal.authority;
  } catch {
    return false;
  }
}

async function issue(
  present: Secret,
  { namespace, name }: { namespace: string; name: string },
  now: number,
): Promise<Record<string, string>> {
  // The library is heavy, and needed once in a quarter of a year.
  const { issueLeaf, newAuthority, readAuthority } = await import("../x509.ts");
  const text = (key: string) => Buffer.from(present.data?.[key] ?? "", "base64").toString();
  const old = text("ca.crt");
  const keep = old !== "" && safeEnd(old) - now > renewal.authority && text("ca.key") !== "";
  const authority = keep
    ? await readAuthority(old, text("ca.key"))
    : await newAuthority(`CN=${name}-ca`, { now, lifetimeMs: lifetime.authority });
  const host = `${name}.${namespace}.svc`;
  const leaf = await issueLeaf(authority, {
    subject: `CN=${host}`,
    names: [host, `${host}.cluster.local`].map((value) => ({ type: "dns", value })),
    now,
    lifetimeMs: lifetime.leaf,
  });
  // Of those before, the newest: it may have signed what is served at this moment.
  const [newest = ""] =
    old.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/) ?? [];
  const bundle = safeEnd(old) < now ? authority.cert : `${authority.cert}${newest}\n`;
  return {
    "ca.crt": encode(keep ? old : bundle),
    "ca.key": encode(authority.keyPem),
    "tls.crt": encode(leaf.cert),
    "tls.key": encode(leaf.key),
  };
}

function safeEnd(pem: string): number {
  try {
    return endOf(pem);
  } catch {
    return 0;
  }
}
