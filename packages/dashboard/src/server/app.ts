import { type IncomingMessage, type ServerResponse } from "node:http";
import { type Duplex } from "node:stream";
import { type Transport } from "@spry/kube";
import {
  type Access,
  bearerOf,
  isOwnLogin,
  loginTokenPrefix,
  socketAccessFor,
  transportFor,
} from "./access.ts";
import { BodyBudget, type BodyShare } from "./body-budget.ts";
import { callFunction } from "./call.ts";
import { draftKeyOf } from "./draft-keys.ts";
import { ForeignTokens } from "./foreign-tokens.ts";
import { functionMetrics } from "./function-metrics.ts";
import { RequestError, sendJson } from "./http.ts";
import { LoginRoutes } from "./login-routes.ts";
import { OidcLogins } from "./oidc.ts";
import { ProblemReports } from "./problem-reports.ts";
import { apiPathProblem, eventsApi, isEventsPath, passToApiServer } from "./proxy.ts";
import { RegistryUsages } from "./registry-usage.ts";
import { originProblem } from "./same-origin.ts";
import { foreignHeaders, securityHeaders } from "./security-headers.ts";
import { type Sessions } from "./sessions.ts";
import { type DashboardOptions } from "./start.ts";
import { TabSockets } from "./tab-socket.ts";
import { sendWebFile, type WebFiles } from "./web-files.ts";

/** All bodies together. */
const maxHeldBytes = 64 * 1024 ** 2;

/** Answers all requests of the port: the page's files, logins, the API server as the user, and Functions. */
export class App {
  readonly #options: DashboardOptions;
  readonly #sockets: TabSockets;
  readonly #logins: { sessions: Sessions; foreign: ForeignTokens };
  readonly #oidc: OidcLogins | undefined;
  readonly #loginRoutes: LoginRoutes;
  readonly #registry: RegistryUsages | undefined;
  readonly #problems: ProblemReports;
  readonly #bodies = new BodyBudget(maxHeldBytes);
  #files: Promise<WebFiles> | undefined;

  constructor(options: DashboardOptions, sessions: Sessions, closing: AbortSignal) {
    this.#options = options;
    this.#problems = new ProblemReports(options.log);
    this.#oidc = options.oidc && new OidcLogins(options.oidc);
    this.#loginRoutes = new LoginRoutes({
      sessions,
      hasLinks: options.access.asOwner !== undefined,
      loginCommand: this.#loginCommand,
      oidc: this.#oidc,
    });
    this.#logins = { sessions, foreign: new ForeignTokens(options.access.withToken) };
    this.#registry = options.registryUsage && new RegistryUsages(options.registryUsage);
    this.#sockets = new TabSockets({
      transportFor: (token) => transportFor(options.access, this.#logins, token),
      socketAccessFor: (token, path) => socketAccessFor(options.access, token, path),
      isOwn: isOwnLogin,
      gateway: options.gateway,
      endOf: (token) => sessions.endOf(token),
      closing,
    });
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A kubelet asks by the Pod's address.
    if (request.url === "/healthz") return void response.writeHead(200, foreignHeaders).end("ok");
    const problem = originProblem(request, this.#options.names);
    if (problem !== undefined) return this.#refuse(response, new RequestError(403, problem));
    try {
      await this.#route(request, response);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#refuse(response, error);
    }
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Unlike other requests, a browser sends these across origins: `Origin` is required.
    const isOurs = originProblem(request, this.#options.names) === undefined;
    if (request.url === "/socket" && isOurs && request.headers.origin !== undefined)
      return this.#sockets.accept(request, socket, head);
    socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "/", method = "GET" } = request;
    if (url.startsWith("/k8s/")) {
      const path = url.slice("/k8s".length);
      const problem = apiPathProblem(path);
      if (problem !== undefined) throw new RequestError(400, problem);
      const user = await this.#userOf(request, response);
      return passToApiServer(request, response, path, user);
    }
    if (url.startsWith("/events/")) {
      const path = url.slice("/events".length);
      const { events } = this.#options;
      if (!isEventsPath(path))
        throw new RequestError(400, "this is not a path of the administration of events");
      const user = await this.#userOf(request, response, events);
      return passToApiServer(request, response, events ? path : eventsApi + path, user);
    }
    const [, namespace = "", name] =
      /^\/metrics\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})$/.exec(url) ?? [];
    if (name !== undefined && method === "GET") {
      const { gatewayMetrics } = this.#options;
      if (!gatewayMetrics)
        throw new RequestError(404, "this dashboard has no gateway with metrics");
      const { transport } = await this.#userOf(request, response);
      const metrics = await functionMetrics({ namespace, name }, transport, gatewayMetrics);
      return sendJson(response, 200, foreignHeaders, metrics);
    }
    if (url.startsWith("/registry-usage") && method === "GET") {
      const [whole, of] = /^\/registry-usage(?:\?ns=([a-z0-9-]{1,63}))?$/.exec(url) ?? [];
      if (whole === undefined) throw new RequestError(400, "this is not the name of a namespace");
      if (!this.#registry) throw new RequestError(404, "this dashboard has no registry of its own");
      const { transport } = await this.#userOf(request, response);
      return sendJson(response, 200, foreignHeaders, await this.#registry.of(of, transport));
    }
    const [path = "/"] = url.split("?", 1);
    if (method === "POST" && (await this.#loginRoutes.answer(path, request, response))) return;
    switch (`${method} ${path}`) {
      case "GET /info":
        return sendJson(response, 200, securityHeaders, this.#info());
      case "POST /drafts/key": {
        const { transport } = await this.#userOf(request, response);
        const { draftSecret, key } = this.#options;
        const secret = (await draftSecret?.()) ?? key;
        return sendJson(response, 200, securityHeaders, await draftKeyOf(transport, secret));
      }
      case "POST /problems": {
        await this.#userOf(request, response);
        await this.#problems.take(request);
        return sendJson(response, 200, foreignHeaders, {});
      }
      case "POST /call":
        return callFunction(request, response, {
          ...(await this.#userOf(request, response)),
          gateway: this.#options.gateway,
        });
      default:
        this.#files ??= this.#options.web();
        return sendWebFile(request, response, await this.#files, securityHeaders);
    }
  }

  /** The user in whose name a request is made, and the memory that it may take. */
  async #userOf(
    { headers }: IncomingMessage,
    response: ServerResponse,
    access: Access = this.#options.access,
  ): Promise<{ transport: Transport; share: BodyShare }> {
    const token = bearerOf(headers.authorization);
    const share = this.#bodies.share(token && !isOwnLogin(token) ? token : loginTokenPrefix);
    response.once("close", share.giveBack);
    const transport = token && (await transportFor(access, this.#logins, token));
    if (!transport) throw new RequestError(401, "the login is not valid, or has expired");
    return { transport, share };
  }

  get #loginCommand(): string {
    return this.#options.loginCommand ?? "spry dashboard";
  }

  #info() {
    const { gateway, version, access, exposedPort } = this.#options;
    return {
      version,
      gateway: gateway?.origin ?? null,
      /** The gateway's port for the hosts of APIRules. */
      exposedPort: exposedPort?.() ?? null,
      /** Whether links log in here; without them, only tokens do. */
      hasLinks: access.asOwner !== undefined,
      /** The command that prints a link. */
      loginCommand: this.#loginCommand,
      /** Where users log in with OpenID Connect. */
      provider: this.#oidc?.provider ?? null,
      hasMetrics: this.#options.gatewayMetrics !== undefined,
      hasWebSockets: gateway !== undefined || access.sockets !== undefined,
      hasRegistry: this.#registry !== undefined,
    };
  }

  #refuse(response: ServerResponse, { status, message }: RequestError): void {
    if (response.headersSent) return void response.destroy();
    // The part of the body that has not been read would be taken for the next request.
    response.setHeader("connection", "close");
    sendJson(response, status, foreignHeaders, { message });
  }
}
