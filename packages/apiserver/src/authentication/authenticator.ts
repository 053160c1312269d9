import { type IncomingMessage } from "node:http";
import { type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { StatusError } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { InvalidTokenError } from "./invalid-token-error.ts";
import { type ServiceAccountTokens } from "./service-account-tokens.ts";

const anonymous: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };
/** What load balancers and people without credentials ask for; roles still decide. */
const openPaths = /^\/(?:healthz|livez|readyz|version)(?:\/|\?|$)/;

/** Finds out who sends a request: by client certificate, then by bearer token. */
export class Authenticator {
  readonly tokens: ServiceAccountTokens;
  readonly #users = new WeakMap<Socket, UserInfo>();

  constructor(tokens: ServiceAccountTokens) {
    this.tokens = tokens;
  }

  /** Throws a `StatusError` 401, which says no more than that. */
  async authenticate({ socket, headers, url = "/" }: IncomingMessage): Promise<UserInfo> {
    const user = this.#userOf(socket);
    if (user) return user;
    const token = bearerToken(headers.authorization);
    if (token) {
      try {
        return (await this.tokens.verify(token)).user;
      } catch (error) {
        if (error instanceof InvalidTokenError) throw unauthorized();
        throw error;
      }
    }
    if (openPaths.test(url)) return anonymous;
    throw unauthorized();
  }

  /** Common name and organisations of a certificate that the client CA has signed. */
  #userOf(socket: Socket): UserInfo | undefined {
    const known = this.#users.get(socket);
    if (known || !(socket instanceof TLSSocket) || !socket.authorized) return known;
    const { subject, fingerprint256 } = socket.getPeerCertificate();
    if (!subject?.CN) return undefined;
    const organisations = subject.O === undefined ? [] : [subject.O].flat();
    const credential = `X509SHA256=${fingerprint256.replaceAll(":", "").toLowerCase()}`;
    const user = {
      name: [subject.CN].flat()[0] ?? "",
      groups: [...organisations, "system:authenticated"],
      extra: { "authentication.kubernetes.io/credential-id": [credential] },
    };
    this.#users.set(socket, user);
    return user;
  }
}

function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+)\s*$/i.exec(header?.trim() ?? "")?.[1];
}

function unauthorized(): StatusError {
  return new StatusError({ code: 401, message: "Unauthorized" });
}
