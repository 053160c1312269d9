/** A real OpenID Connect provider (`oidc-provider`, certified), with one client that gets tokens for itself. */
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { Provider } from "oidc-provider";

const clientId = "shop";
const clientSecret = "a secret of the client";

export interface TokenAsked {
  /** With spaces between. */
  scope?: string;
  /** Several with `+` between. */
  audience?: string;
  expiresIn?: number;
}

export interface OidcProvider {
  issuer: string;
  jwksUri: string;
  tokenEndpoint: string;
  /** An access token by client credentials, as the tutorials get it. */
  token(asked?: TokenAsked): Promise<string>;
  /** Publishes these keys; tokens are signed with the first from now on. A provider takes them at its start. */
  useKeys(...kids: string[]): Promise<void>;
  /** Stops listening. */
  close(): Promise<void>;
}

export async function startOidcProvider(port = 0): Promise<OidcProvider> {
  let handle: RequestListener = (_, response) => response.writeHead(503).end();
  const server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const keys = new Map<string, JWK>();
  const useKeys = async (...kids: string[]) => {
    for (const kid of kids) {
      if (keys.has(kid)) continue;
      const { privateKey } = await generateKeyPair("RS256", { extractable: true });
      keys.set(kid, { ...(await exportJWK(privateKey)), kid, use: "sig", alg: "RS256" });
    }
    handle = new Provider(issuer, configuration(kids.map((kid) => keys.get(kid)))).callback();
  };
  await useKeys("one");
  const metadata = await fetch(`${issuer}/.well-known/openid-configuration`);
  const { jwks_uri: jwksUri, token_endpoint: tokenEndpoint } = (await metadata.json()) as {
    jwks_uri: string;
    token_endpoint: string;
  };
  return {
    issuer,
    jwksUri,
    tokenEndpoint,
    useKeys,
    async token({ scope, audience = "any", expiresIn = 300 } = {}) {
      const credentials = Buffer.from(`${clientId}:${encodeURIComponent(clientSecret)}`).toString(
        "base64",
      );
      const body = new URLSearchParams({
        grant_type: "client_credentials",
        resource: `urn:${audience}:${expiresIn}`,
        ...(scope ? { scope } : {}),
      });
      const headers = { authorization: `Basic ${credentials}` };
      const answer = await fetch(tokenEndpoint, { method: "POST", headers, body });
      const { access_token: token } = (await answer.json()) as { access_token?: string };
      if (!token) throw new Error(`the provider has refused a token: status ${answer.status}`);
      return token;
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function configuration(keys: (JWK | undefined)[]) {
  return {
    jwks: { keys },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ["read", "write"],
    ttl: { ClientCredentials: 300 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(_context: unknown, resource: string) {
          const [, audience, seconds] = resource.split(":");
          return {
            scope: "read write",
            audience,
            accessTokenTTL: Number(seconds),
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: "RS256" } },
          };
        },
      },
    },
    formats: {
      customizers: {
        jwt(_context: unknown, _token: unknown, jwt: { payload: { aud: string | string[] } }) {
          const audiences = String(jwt.payload.aud).split("+");
          if (audiences.length > 1) jwt.payload.aud = audiences;
        },
      },
    },
  };
}
