import { readFile } from "node:fs/promises";
import { type Clock } from "./clock.ts";
import { execCredentials } from "./exec-credential.ts";
import { type ClusterConfig } from "./kubeconfig.ts";

/** What a request shows of its sender. */
export interface Credential {
  /** The whole header. */
  authorization?: string;
  /** PEM, both or none. */
  clientCertificate?: string;
  clientKey?: string;
}

export interface CredentialSource {
  current(): Promise<Credential>;
  /** Called when the server responded with 401; true when asking again may bring another credential. */
  refused(credential: Credential): boolean;
}

/** How long a token is used before its file is read again: kubelet renews well before the end. */
const tokenFileMs = 60_000;

/** Who we are, as a kubeconfig's user says it. */
export function credentialsOf(config: ClusterConfig, clock: Clock): CredentialSource {
  const { clientCertificate, clientKey, exec, tokenFile, token, username, password } = config;
  const certificate = clientCertificate && clientKey ? { clientCertificate, clientKey } : {};
  if (tokenFile) return tokenFileCredentials(tokenFile, certificate, clock);
  if (token) return fixed({ ...certificate, authorization: `Bearer ${token}` });
  if (username !== undefined) {
    const basic = Buffer.from(`${username}:${password ?? ""}`).toString("base64");
    return fixed({ ...certificate, authorization: `Basic ${basic}` });
  }
  if (exec && !clientCertificate) return execCredentials(exec, config, clock);
  return fixed(certificate);
}

function fixed(credential: Credential): CredentialSource {
  return { current: () => Promise.resolve(credential), refused: () => false };
}

function tokenFileCredentials(
  file: string,
  certificate: Credential,
  clock: Clock,
): CredentialSource {
  let read: { at: number; credential: Credential } | undefined;
  return {
    async current() {
      if (!read || clock.elapsed() - read.at > tokenFileMs) {
        const token = (await readFile(file, "utf8")).trim();
        const credential = { ...certificate, authorization: `Bearer ${token}` };
        read = { at: clock.elapsed(), credential };
      }
      return read.credential;
    },
    refused(credential) {
      if (read?.credential === credential) read = undefined;
      return true;
    },
  };
}
