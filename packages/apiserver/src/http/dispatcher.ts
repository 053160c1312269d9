import { messageOf, StatusError } from "@spry/kube";
import { type HeaderList, impersonated, impersonationOf } from "../authentication/impersonation.ts";
import { openIdDocument } from "../authentication/open-id.ts";
import { answerOf } from "../aggregation/answer.ts";
import { attributesOf } from "../authorization/attributes.ts";
import { Discovery } from "../discovery/discovery.ts";
import { type Engine } from "../engine.ts";
import { type ResourceRequest, type UserInfo } from "../request.ts";
import { badRequest, invalidOptions, methodNotAllowed, unknownPath } from "../errors.ts";
import { handleResource } from "../handlers/resource-handler.ts";
import { type ReviewKind, reviews } from "../handlers/reviews.ts";
import { snapshotResponse } from "../handlers/snapshot.ts";
import { metricsGroup, metricsResponse } from "../metrics/metrics.ts";
import { OpenApi } from "../openapi/open-api.ts";
import { isProxyPath, proxyPathOf } from "../proxy/proxy-path.ts";
import { type ProxyTarget, proxyTargetOf } from "../proxy/proxy-target.ts";
import { checkBody } from "../schema/field-validation.ts";
import { builtin } from "../schema/schema.ts";
import { type PodStream, podStreamOf } from "../streaming/pod-stream.ts";
import { healthResponse } from "./health.ts";
import { type HttpRequest, HttpResponse } from "./message.ts";
import { ownerOf } from "./owner.ts";
import { inPreferredEncoding } from "./preferred-encoding.ts";
import { readObject } from "./request-body.ts";
import { type RequestInfo, requestInfoOf } from "./request-info.ts";
import { errorResponse, headOf, jsonResponse, textResponse } from "./responses.ts";

const maxUrlLength = 32 * 1024;
const maxManagerLength = 128;

/** The group and version are not served: the response is that of a plain web server, not of an API. */
class UnservedPathError extends Error {}

function plainText(text: string, status = 200): HttpResponse {
  return new HttpResponse(text, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
}

interface Passed {
  prefix: string;
  path: string;
  target: ProxyTarget;
}

/** Turns requests into responses; never throws. */
export class Dispatcher {
  readonly #engine: Engine;
  readonly #discovery: Discovery;
  readonly #openApi: OpenApi;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#discovery = new Discovery(engine.catalog, () => engine.aggregator.versions());
    this.#openApi = new OpenApi(engine.catalog, () => engine.aggregator.versions());
  }

  /** Answers the user's request, or that of whom they want to be taken for. */
  async handle(
    request: HttpRequest,
    requester: UserInfo,
    headers: HeaderList,
  ): Promise<HttpResponse> {
    const response = await this.#answer(request, requester, headers);
    return request.method === "HEAD" ? headOf(response) : response;
  }

  async #answer(
    request: HttpRequest,
    requester: UserInfo,
    headers: HeaderList,
  ): Promise<HttpResponse> {
    const warnings: string[] = [];
    try {
      const user = this.#actingUser(requester, headers);
      const response = await this.#route(request, user, warnings);
      return await inPreferredEncoding(request, response, ownerOf(requester));
    } catch (error) {
      if (error instanceof UnservedPathError) return plainText("404 page not found\n", 404);
      if (!(error instanceof StatusError) || error.code >= 500) {
        const pathname = URL.parse(request.url)?.pathname;
        const stack = error instanceof Error ? error.stack : undefined;
        this.#engine.log.error(
          { method: request.method, path: pathname, error: messageOf(error), stack },
          "request failed",
        );
      }
      return inPreferredEncoding(request, errorResponse(error, warnings), ownerOf(requester));
    }
  }

  /** What a request to change its connection's protocol is for. Throws a `StatusError`. */
  stream(request: HttpRequest, requester: UserInfo, headers: HeaderList): PodStream {
    const user = this.#actingUser(requester, headers);
    const url = urlOf(request);
    const info = requestInfoOf(url.pathname);
    if (!info) throw badRequest("the path holds an escape that cannot be decoded");
    const { authorizer } = this.#engine;
    const attributes = attributesOf(user, request.method, url, info);
    authorizer.require(attributes);
    // A WebSocket always comes by GET, which must not make a reader one who may run commands.
    authorizer.require({ ...attributes, verb: "create" });
    return podStreamOf(this.#engine, this.#resourceRequest(request, url, info, user, []));
  }

  /** The target of a proxied request. Throws a `StatusError`. */
  proxy(request: HttpRequest, requester: UserInfo, headers: HeaderList): Passed {
    const user = this.#actingUser(requester, headers);
    const url = urlOf(request);
    const info = requestInfoOf(url.pathname);
    const path = proxyPathOf(url.pathname + url.search);
    if (!info) throw badRequest("the path cannot be read");
    this.#engine.authorizer.require(attributesOf(user, request.method, url, info));
    const backend = this.#engine.aggregator.backendOf(url.pathname);
    if (backend) {
      const target = { kind: "server", backend, user } as const;
      return { prefix: "", path: url.pathname + url.search, target };
    }
    if (!path) throw badRequest("the path cannot be read");
    const { prefix, target } = path;
    return { prefix, path: target, target: proxyTargetOf(this.#engine, path) };
  }

  /** Whether a request is passed on as it comes: to a Pod, a node, or another API server. */
  isPassedOn(url: string): boolean {
    return isProxyPath(url) || this.#engine.aggregator.serves(url);
  }

  async #route(request: HttpRequest, user: UserInfo, warnings: string[]): Promise<HttpResponse> {
    const url = urlOf(request);
    const info = requestInfoOf(url.pathname);
    if (!info) throw badRequest("the path holds an escape that cannot be decoded");
    this.#engine.authorizer.require(attributesOf(user, request.method, url, info));
    const backend = this.#engine.aggregator.backendOf(url.pathname);
    if (backend) return answerOf(backend, request, url.pathname + url.search, user);
    const review = reviews[`${info.group}/${info.version}/${info.resource}`];
    if (review) return this.#review(request, user, review, info, warnings);
    if (info.resource === undefined) return this.#nonResource(request, url, user);
    if (info.group === metricsGroup) return metricsResponse(this.#engine, request, info);
    const resource = this.#resourceRequest(request, url, info, user, warnings);
    return handleResource(this.#engine, resource, request);
  }

  #actingUser(requester: UserInfo, headers: HeaderList): UserInfo {
    const wish = impersonationOf(headers);
    return wish ? impersonated(this.#engine.authorizer, requester, wish) : requester;
  }

  async #review(
    request: HttpRequest,
    user: UserInfo,
    { kind, namespaced = false, review }: ReviewKind,
    { group, version, namespace, name }: RequestInfo,
    warnings: string[],
  ): Promise<HttpResponse> {
    if (name !== undefined || namespaced !== (namespace !== undefined)) throw unknownPath();
    if (request.method !== "POST") throw methodNotAllowed();
    const given = await readObject(request);
    const apiVersion = `${group}/${version}`;
    checkKind(given, apiVersion, kind);
    const type = this.#engine.catalog.reviews.find(
      (each) => each.kind === kind && each.group === group,
    );
    const { searchParams } = new URL(request.url);
    if (type && given) warnings.push(...checkBody(type, given, searchParams));
    const body = {
      ...given,
      kind,
      apiVersion,
      metadata: given?.metadata ?? {},
      spec: given?.spec ?? {},
    };
    const question = { engine: this.#engine, user, namespace: namespace ?? "", body };
    return jsonResponse({ ...body, ...(await review(question)) }, 201, warnings);
  }

  #resourceRequest(
    request: HttpRequest,
    url: URL,
    info: RequestInfo,
    user: UserInfo,
    warnings: string[],
  ): ResourceRequest {
    const { group = "", version = "", resource = "" } = info;
    const type = this.#engine.catalog.find(group, version, resource);
    if (!type && !this.#discovery.document(`/apis/${group}`, false) && group !== "")
      throw new UnservedPathError();
    if (info.watch && request.method !== "GET") throw methodNotAllowed();
    if (!type || info.rest.length > 0) throw unknownPath();
    if (!type.namespaced && info.namespace !== undefined) throw unknownPath();
    if (type.namespaced && info.namespace === undefined && info.name !== undefined)
      throw unknownPath();
    const query = url.searchParams;
    checkFieldValidation(request.method, query);
    return {
      type,
      namespace: info.namespace ?? "",
      name: info.name ?? "",
      subresource: info.subresource ?? "",
      query,
      user,
      manager: managerOf(request, query),
      dryRun: dryRunOf(request.method, query),
      ...(info.watch && { deprecatedWatch: true }),
      warnings,
      get signal() {
        return request.signal;
      },
    };
  }

  #nonResource(
    request: HttpRequest,
    url: URL,
    user: UserInfo,
  ): HttpResponse | Promise<HttpResponse> {
    const health = healthResponse(this.#engine, url);
    if (health) return health;
    const path = url.pathname.replace(/\/+$/, "") || "/";
    if (request.method !== "GET" && request.method !== "HEAD") throw unknownPath();
    if (path === "/version") return jsonResponse(versionInfo);
    if (path === "/snapshot" && request.method === "GET")
      return snapshotResponse(this.#engine.store);
    if (path === "/openapi/v2" || path === "/openapi/v3" || path.startsWith("/openapi/v3/")) {
      const backend = this.#engine.aggregator.openApiBackendOf(path);
      if (backend) return answerOf(backend, request, path, user);
      return this.#openApi.respond(request, path);
    }
    const openId = openIdDocument(this.#engine.authenticator.tokens, path);
    if (openId) return openId;
    if (path === "/")
      return jsonResponse({
        paths: [
          "/.well-known/openid-configuration",
          "/api",
          "/apis",
          "/healthz",
          "/livez",
          "/openapi/v2",
          "/openapi/v3",
          "/openid/v1/jwks",
          "/readyz",
          "/version",
        ],
      });
    return this.#discover(request, path);
  }

  #discover(request: HttpRequest, path: string): HttpResponse {
    const accept = request.headers.get("accept") ?? "";
    const isRoot = path === "/api" || path === "/apis";
    const aggregated =
      isRoot &&
      /application\/json;[^,]*g=apidiscovery\.k8s\.io;[^,]*v=v2(?:;|,|$)/.test(`${accept},`);
    const document = /^\/apis?(?:\/|$)/.test(path)
      ? this.#discovery.document(path, aggregated)
      : undefined;
    if (document === undefined) {
      const [, root, group] = path.split("/");
      const isKnown =
        root === "api" || (group && this.#discovery.document(`/apis/${group}`, false));
      throw isKnown ? unknownPath() : new UnservedPathError();
    }
    if (!aggregated) return textResponse(document);
    return new HttpResponse(document, {
      headers: {
        "content-type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        vary: "Accept",
      },
    });
  }
}

const [, minor = "0"] = /^v1\.(\d+)/.exec(builtin.release) ?? [];
const versionInfo = {
  major: "1",
  minor,
  gitVersion: `${builtin.release}+spry`,
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: `${process.platform}/${process.arch === "x64" ? "amd64" : process.arch}`,
};

function urlOf({ url }: HttpRequest): URL {
  if (url.length > maxUrlLength)
    throw new StatusError({ code: 414, message: "the URL is too long" });
  const parsed = URL.parse(url);
  if (!parsed) throw badRequest("the request cannot be read");
  return parsed;
}

function checkKind(body: object | undefined, apiVersion: string, kind: string): void {
  const given = { apiVersion, kind, ...body };
  if (given.apiVersion === apiVersion && given.kind === kind) return;
  throw badRequest(
    `the object is a ${given.apiVersion} ${given.kind}, but the URL is that of a ${apiVersion} ${kind}`,
  );
}

const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** As Go quotes a text (`%q`). */
function goQuoted(text: string): string {
  return JSON.stringify(text).replaceAll(/\\u00([0-9a-f]{2})/g, String.raw`\x$1`);
}

/** The client's name for itself; otherwise what its user agent begins with. */
function managerOf(request: HttpRequest, query: URLSearchParams): string {
  const given = query.get("fieldManager");
  if (given && (given.length > maxManagerLength || given.search(unprintable) >= 0)) {
    throw invalidOptions(optionsKindOf(request.method), (errors) => {
      if (given.length > maxManagerLength) errors.tooLong("fieldManager", maxManagerLength);
      for (const { index, 0: found } of given.matchAll(unprintable)) {
        const point = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
        const detail = `invalid character U+${point} (at position ${index})`;
        errors.quoted("fieldManager", goQuoted(given), detail);
      }
    });
  }
  const agent = (request.headers.get("user-agent") ?? "").split("/")[0] ?? "";
  return given || agent.slice(0, maxManagerLength) || "unknown";
}

function optionsKindOf(method: string): string {
  const verb = { POST: "Create", PUT: "Update", PATCH: "Patch", DELETE: "Delete" }[method];
  return `${verb ?? "List"}Options`;
}

/** `Strict`, `Warn` or `Ignore`; empty stands for `Warn`. */
function checkFieldValidation(method: string, query: URLSearchParams): void {
  const mode = query.get("fieldValidation") ?? "";
  const modes = ["", "Ignore", "Strict", "Warn"];
  if (modes.includes(mode) || !["POST", "PUT", "PATCH"].includes(method)) return;
  throw invalidOptions(optionsKindOf(method), (errors) =>
    errors.unsupported("fieldValidation", mode, modes),
  );
}

function dryRunOf(method: string, query: URLSearchParams): boolean {
  const values = query.getAll("dryRun").filter((value) => value !== "");
  if (values.some((value) => value !== "All")) {
    throw invalidOptions(optionsKindOf(method), (errors) =>
      errors.unsupported("dryRun", values, ["All"]),
    );
  }
  return values.length > 0;
}
