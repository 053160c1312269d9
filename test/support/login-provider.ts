/** A real OpenID Connect provider whose users log in on its pages, as those of a company do. */
import { createServer, type Server } from "node:https";
import { createServer as createPlainServer, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

export interface LoginProviderOptions {
  /** Where it listens. */
  host: string;
  /** Without them it speaks HTTP, which is for loopback addresses only. */
  tls?: { crt: string; key: string };
  /** The dashboard's `/login/callback`. */
  redirectUri: string;
  /** Of ID tokens, in seconds. */
  tokenSeconds?: number;
}

export interface LoginProvider {
  issuer: string;
  clientId: string;
  close(): Promise<void>;
}

const clientId = "spry-dashboard";

/** Its development pages accept every name with every password; the name is the claim `sub`. */
export async function startLoginProvider(options: LoginProviderOptions): Promise<LoginProvider> {
  const { host, tls, redirectUri, tokenSeconds = 3600 } = options;
  let handle: RequestListener = (_, response) => response.writeHead(503).end();
  const listener: RequestListener = (request, response) => handle(request, response);
  const server: Server | ReturnType<typeof createPlainServer> = tls
    ? createServer({ cert: tls.crt, key: tls.key }, listener)
    : createPlainServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const issuer = `${tls ? "https" : "http"}://${host}:${port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: "one", use: "sig", alg: "RS256" }] },
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: [redirectUri],
        response_types: ["code"],
      },
    ],
    scopes: ["openid", "offline_access"],
    ttl: { IdToken: tokenSeconds, AccessToken: 60, RefreshToken: 3600, Grant: 3600, Session: 3600 },
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
  });
  handle = provider.callback();
  return {
    issuer,
    clientId,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
