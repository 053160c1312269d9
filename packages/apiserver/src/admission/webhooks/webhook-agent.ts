import { X509Certificate } from "node:crypto";
import { Agent, type AgentOptions } from "node:https";
import { type Duplex } from "node:stream";
import { checkServerIdentity, type TLSSocket } from "node:tls";

type Done = (error: Error | null, socket?: Duplex) => void;

const serverAuthentication = ["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"];

/**
 * HTTPS to servers whose certificates are signed by one of `authorities` (PEM), and verified as Go does: by whether the signature is right.
 * OpenSSL takes a certificate whose subject is its issuer's for its own issuer, and Knative's and Tekton's webhooks have such ones by default.
 */
export class WebhookAgent extends Agent {
  readonly #authorities: X509Certificate[];

  constructor(options: AgentOptions, authorities: string) {
    super({ ...options, ca: authorities });
    this.#authorities = certificatesOf(authorities);
  }

  override createConnection(options: object, done: Done): undefined {
    this.#connect(options, {}, (error, socket) => {
      const { code } = (error ?? {}) as { code?: string };
      if (code !== "DEPTH_ZERO_SELF_SIGNED_CERT" && code !== "CERT_SIGNATURE_FAILURE")
        return done(error, socket);
      // Nothing is sent on it before it has been verified here.
      const { servername, host = "" } = options as { servername?: string; host?: string };
      const unverified = { rejectUnauthorized: false, session: undefined };
      this.#connect(options, unverified, (failure, other) => {
        const problem = failure ?? this.#problemOf(other as TLSSocket, servername || host, error);
        if (problem) other?.destroy();
        done(problem, problem ? undefined : other);
      });
    });
    return undefined;
  }

  #connect(options: object, changes: object, done: Done): void {
    const socket = super.createConnection({ ...options, ...changes }) as TLSSocket;
    const fail = (error: Error) => done(error);
    socket.once("error", fail);
    socket.once("secureConnect", () => {
      socket.off("error", fail);
      done(null, socket);
    });
  }

  /** Why the certificate is not one for this host by one of the authorities: what OpenSSL said, when none has signed it. */
  #problemOf(socket: TLSSocket, host: string, original: Error | null): Error | null {
    const certificate = socket.getPeerX509Certificate();
    if (!certificate) return original;
    const signer = this.#authorities.find(
      (each) => each.ca && certificate.checkIssued(each) && certificate.verify(each.publicKey),
    );
    if (!signer) return original;
    const now = Date.now();
    for (const each of [certificate, signer]) {
      if (Date.parse(each.validFrom) <= now && now <= Date.parse(each.validTo)) continue;
      return Object.assign(new Error("certificate has expired"), { code: "CERT_HAS_EXPIRED" });
    }
    // Extended uses, whatever the name.
    const uses = certificate.keyUsage as string[] | undefined;
    if (uses && !uses.some((use) => serverAuthentication.includes(use)))
      return Object.assign(new Error("unsuitable certificate purpose"), {
        code: "INVALID_PURPOSE",
      });
    return checkServerIdentity(host, certificate.toLegacyObject()) ?? null;
  }
}

function certificatesOf(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      // OpenSSL refuses the bundle itself, in its own words.
      return [];
    }
  });
}
