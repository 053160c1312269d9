import { credentialsOf } from "./credentials.ts";
import { type ClusterConfig } from "./kubeconfig.ts";
import { systemClock } from "./clock.ts";

/** What a WebSocket to an API server is opened with, by whichever library. */
export interface WebSocketAccess {
  /** `wss:` or `ws:`. */
  url: string;
  headers: Record<string, string>;
  /** Options of `node:tls`. */
  tls: {
    ca?: string;
    cert?: string;
    key?: string;
    servername?: string;
    rejectUnauthorized: boolean;
  };
}

/** `path` begins with a slash. Throws when a credential cannot be had. Impersonation is not supported. */
export async function webSocketAccess(
  config: ClusterConfig,
  path: string,
): Promise<WebSocketAccess> {
  const { authorization, clientCertificate, clientKey } = await credentialsOf(
    config,
    systemClock,
  ).current();
  const { certificateAuthority, insecureSkipTlsVerify, tlsServerName } = config;
  return {
    url: config.server.replace(/^http/, "ws").replace(/\/$/, "") + path,
    headers: authorization === undefined ? {} : { authorization },
    tls: {
      ...(certificateAuthority && { ca: certificateAuthority }),
      ...(clientCertificate && { cert: clientCertificate }),
      ...(clientKey && { key: clientKey }),
      ...(tlsServerName && { servername: tlsServerName }),
      rejectUnauthorized: insecureSkipTlsVerify !== true,
    },
  };
}
