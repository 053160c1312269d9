/** An issuer of tokens (OpenID Connect) that serves its keys over HTTP. */
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

/** `port` has to be one that the platform's operator allows (`--allow-loopback`), where the address is this machine's. */
export async function startIssuer(address = "127.0.0.1", port = 0) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" };
  const server = createServer((_, response) => response.end(JSON.stringify({ keys: [jwk] })));
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  const url = `http://${address}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    token: (claims: JWTPayload = {}) =>
      new SignJWT({ iss: url, sub: "ann", ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "one" })
        .setExpirationTime("5m")
        .sign(privateKey),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
