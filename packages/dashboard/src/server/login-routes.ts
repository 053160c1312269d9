import { type IncomingMessage, type ServerResponse } from "node:http";
import { bearerOf } from "./access.ts";
import { ExchangeLimit } from "./exchange-limit.ts";
import { readJson, RequestError, sendJson } from "./http.ts";
import { KnownRefreshes } from "./known-refreshes.ts";
import { type OidcLogin, type OidcLogins } from "./oidc.ts";
import { securityHeaders } from "./security-headers.ts";
import { type Sessions } from "./sessions.ts";

export interface LoginRoutesOptions {
  sessions: Sessions;
  /** Whether links log in here. */
  hasLinks: boolean;
  /** The command that prints a link. */
  loginCommand: string;
  oidc: OidcLogins | undefined;
}

/** A code or a proof; providers' codes and refresh tokens are longer. */
const maxBytes = 4096;
const maxOidcBytes = 16 * 1024;

/** `POST /login/…`: each exchanges something for a login. */
export class LoginRoutes {
  readonly #options: LoginRoutesOptions;
  readonly #logins = new ExchangeLimit();
  /** Behind an Ingress all have one address: clients that have not logged in take no one's renewals. */
  readonly #renewals = new ExchangeLimit();
  readonly #unknownRenewals = new ExchangeLimit();
  readonly #known = new KnownRefreshes();

  constructor(options: LoginRoutesOptions) {
    this.#options = options;
  }

  /** The response's content; undefined for a path that is none of these. */
  async answer(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<true | undefined> {
    const make = this.#routes[path];
    if (!make) return undefined;
    sendJson(response, 200, securityHeaders, await make(request));
    return true;
  }

  readonly #routes: Record<string, (request: IncomingMessage) => Promise<object> | object> = {
    "/login/redeem": async (request) => {
      const { code } = await readJson(request, maxBytes);
      const { sessions, hasLinks, loginCommand } = this.#options;
      const login = typeof code === "string" ? sessions.redeem(code) : undefined;
      if (login && hasLinks) return login;
      throw new RequestError(
        403,
        `this link has been used or has expired: \`${loginCommand}\` prints a new one`,
      );
    },
    "/login/renew": ({ headers }) => {
      const login = this.#options.sessions.renew(bearerOf(headers.authorization) ?? "");
      if (login) return login;
      throw new RequestError(401, "the login is not valid, or has expired");
    },
    "/login/code": async (request) => {
      const { proof } = await readJson(request, maxBytes);
      const { sessions } = this.#options;
      if (typeof proof === "string" && sessions.isProof(proof))
        return { code: sessions.issueCode() };
      throw new RequestError(403, "only the owner of the data directory gets a link");
    },
    "/login/oidc/begin": () => this.#oidc.begin(),
    "/login/oidc/finish": async (request) => {
      const { code, verifier, nonce } = await readJson(request, maxOidcBytes);
      if (typeof code !== "string" || typeof verifier !== "string" || typeof nonce !== "string")
        throw new RequestError(400, "code, verifier and nonce are required");
      const oidc = this.#oidc;
      const exchange = () => oidc.finish({ code, verifier, nonce });
      return this.#remember(await this.#logins.run(addressOf(request), exchange));
    },
    "/login/oidc/renew": async (request) => {
      const { refresh } = await readJson(request, maxOidcBytes);
      if (typeof refresh !== "string") throw new RequestError(400, "refresh is required");
      const oidc = this.#oidc;
      const renew = () => oidc.renew(refresh);
      const known = this.#known.find(refresh);
      const login = known
        ? await this.#renewals.run(known, renew)
        : await this.#unknownRenewals.run(addressOf(request), renew);
      return this.#remember(login, refresh);
    },
  };

  /** A provider that gives no new refresh token has left the one before as it is. */
  #remember(login: OidcLogin, before?: string): OidcLogin {
    const refresh = login.refresh ?? before;
    if (refresh !== undefined) this.#known.add(refresh);
    return login;
  }

  get #oidc(): OidcLogins {
    if (this.#options.oidc) return this.#options.oidc;
    throw new RequestError(404, "this dashboard has no identity provider");
  }
}

const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? "";
