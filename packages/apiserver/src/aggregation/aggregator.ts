import { type IncomingMessage } from "node:http";
import { type Clock, type Logger, messageOf, setCondition, StatusError } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { type ApiService, apiServices, availabilityOf } from "../kinds/api-service/api-service.ts";
import { StaleWriteError, type Store } from "../store/store.ts";
import { type AggregatedVersion, type ApiResource } from "./aggregated-version.ts";
import { findAvailability } from "./availability.ts";
import { Backend, unavailable } from "./backend.ts";
import { type FrontProxy } from "./front-proxy.ts";

/** Between two checks of a server that is there; kube-apiserver's. */
const checkMs = 30_000;
const firstRetryMs = 250;

/** An APIService that names a Service. */
interface Registration {
  apiService: ApiService;
  /** Of its spec: a change of it makes another backend. */
  key: string;
  backend: Backend;
  resources: ApiResource[] | undefined;
  openApiHash: string | undefined;
  retryMs: number;
  isChecking: boolean;
  isStale: boolean;
  cancel(): void;
}

interface Dependencies {
  store: Store;
  clock: Clock;
  log: Logger;
  frontProxy: FrontProxy | Promise<FrontProxy> | undefined;
  /** The set of what is served, or its resources, has changed. */
  onChange(): void;
}

const openApiPath = /^\/openapi\/v3\/apis\/([^/]+)\/([^/]+)$/;
const groupVersionPath = /^\/apis\/([^/]+)\/([^/]+)(?:\/|$)/;

/** Other servers' groups and versions: keeps their APIServices' conditions, and knows whom to pass a request to. */
export class Aggregator {
  readonly #deps: Dependencies;
  readonly #registrations = new Map<string, Registration>();
  #frontProxy: FrontProxy | undefined;
  #stops: (() => void)[] = [];
  #stopped = false;

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  /** Requests are answered 503 until the first checks have passed. */
  start(): void {
    const { store, log, frontProxy } = this.#deps;
    Promise.resolve(frontProxy)
      .then((found) => (this.#frontProxy = found))
      .catch((error: unknown) =>
        log.error(
          { error: messageOf(error) },
          "the front-proxy certificate is missing: aggregated API servers will refuse requests",
        ),
      )
      .finally(() => this.#watch(store))
      .catch((error: unknown) => log.error({ error: messageOf(error) }, "aggregation"));
  }

  stop(): void {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    for (const key of this.#registrations.keys()) this.#forget(key);
  }

  /** Whether a request for the URL, as it is on the wire, is another server's. */
  serves(url: string): boolean {
    if (this.#registrations.size === 0) return false;
    const pathname = URL.parse(`https://kubernetes${url}`)?.pathname;
    return pathname !== undefined && this.#find(pathname) !== undefined;
  }

  /**
   * Whom to pass a request for the path to; undefined when it is this server's own. Throws a `StatusError` 503, and 400 for a path
   * that the other server could divide in another way than this one, which checks the rights.
   */
  backendOf(pathname: string): Backend | undefined {
    const found = this.#find(pathname);
    if (!found) return undefined;
    if (/%2f|%5c|\/\//i.test(pathname))
      throw badRequest("a path of another API server must have no encoded and no empty parts");
    const { apiService, backend } = found;
    const condition = availabilityOf(apiService);
    if (condition?.status === "True") return backend;
    const { reason, message } = condition ?? {};
    throw unavailable(
      backend.name,
      reason ? `${reason}: ${message}` : "it has not been checked yet",
    );
  }

  versions(): AggregatedVersion[] {
    return [...this.#registrations.values()].map((each) => ({
      ...versionOf(each.apiService),
      resources: each.resources,
      openApiHash: each.openApiHash,
    }));
  }

  /** Whom to ask for an OpenAPI document (version 3); undefined when it is none of another server. */
  openApiBackendOf(pathname: string): Backend | undefined {
    const [, group, version] = openApiPath.exec(pathname) ?? [];
    const found = group === undefined ? undefined : this.#registrations.get(`${version}.${group}`);
    return found?.openApiHash === undefined ? undefined : found.backend;
  }

  #find(pathname: string): Registration | undefined {
    if (this.#registrations.size === 0) return undefined;
    const [, group, version] = groupVersionPath.exec(pathname) ?? [];
    return group === undefined ? undefined : this.#registrations.get(`${version}.${group}`);
  }

  #watch(store: Store): void {
    if (this.#stopped) return;
    for (const { name, object } of store.list(apiServices)) this.#take(name, object as ApiService);
    const checkService = (namespace: string, service: string) => {
      for (const registration of this.#registrations.values()) {
        const named = registration.apiService.spec.service;
        if (named?.namespace === namespace && named.name === service) this.#check(registration);
      }
    };
    const since = store.revision;
    this.#stops = [
      store.watch(apiServices, since, ({ type, current: { name, object } }) =>
        this.#take(name, type === "DELETED" ? undefined : (object as ApiService)),
      ),
      store.watch("/services", since, ({ current: { namespace, name } }) =>
        checkService(namespace, name),
      ),
      store.watch("discovery.k8s.io/endpointslices", since, ({ current: { namespace, object } }) =>
        checkService(namespace, object.metadata.labels?.["kubernetes.io/service-name"] ?? ""),
      ),
    ];
  }

  #take(name: string, apiService: ApiService | undefined): void {
    if (!apiService?.spec.service) return this.#forget(name);
    const key = JSON.stringify(apiService.spec);
    const known = this.#registrations.get(name);
    if (known?.key === key) {
      known.apiService = apiService;
      return;
    }
    if (known) this.#forget(name);
    const { store } = this.#deps;
    const registration: Registration = {
      apiService,
      key,
      backend: new Backend(name, apiService.spec, { store, frontProxy: this.#frontProxy }),
      resources: undefined,
      openApiHash: undefined,
      retryMs: firstRetryMs,
      isChecking: false,
      isStale: false,
      cancel: () => {},
    };
    this.#registrations.set(name, registration);
    this.#deps.onChange();
    this.#check(registration);
  }

  #forget(name: string): void {
    const registration = this.#registrations.get(name);
    if (!registration) return;
    this.#registrations.delete(name);
    registration.cancel();
    registration.backend.close();
    this.#deps.onChange();
  }

  /** One check at a time; what changes meanwhile is checked afterwards. */
  #check(registration: Registration): void {
    registration.isStale = true;
    if (registration.isChecking) return;
    registration.isChecking = true;
    registration.cancel();
    const { log } = this.#deps;
    this.#passes(registration)
      .catch((error: unknown) =>
        log.error(
          { name: registration.backend.name, error: messageOf(error) },
          "checking an APIService failed",
        ),
      )
      .finally(() => {
        registration.isChecking = false;
        this.#schedule(registration);
      });
  }

  async #passes(registration: Registration): Promise<void> {
    const { store } = this.#deps;
    while (registration.isStale && this.#isCurrent(registration)) {
      registration.isStale = false;
      const { apiService, backend } = registration;
      const found = await findAvailability(store, apiService.spec, backend);
      if (!this.#isCurrent(registration)) return;
      const { condition, resources, openApiHash } = found;
      const isChanged =
        JSON.stringify(resources) !== JSON.stringify(registration.resources) ||
        openApiHash !== registration.openApiHash;
      registration.resources = resources;
      registration.openApiHash = openApiHash;
      if (isChanged) this.#deps.onChange();
      registration.retryMs = resources ? firstRetryMs : Math.min(registration.retryMs * 2, checkMs);
      await this.#write(backend.name, condition);
    }
  }

  #schedule(registration: Registration): void {
    if (!this.#isCurrent(registration)) return;
    const after = registration.resources ? checkMs : registration.retryMs;
    registration.cancel = this.#deps.clock.after(after, () => this.#check(registration));
  }

  #isCurrent(registration: Registration): boolean {
    return !this.#stopped && this.#registrations.get(registration.backend.name) === registration;
  }

  async #write(
    name: string,
    condition: NonNullable<ReturnType<typeof availabilityOf>>,
  ): Promise<void> {
    const { store, clock } = this.#deps;
    const stored = store.get({ collection: apiServices, namespace: "", name });
    if (!stored) return;
    const next = stored.copy() as ApiService;
    const before = availabilityOf(next);
    const { status, reason, message } = condition;
    if (before?.status === status && before.reason === reason && before.message === message) return;
    const conditions = setCondition(next.status?.conditions, condition, clock);
    next.status = { ...next.status, conditions };
    try {
      await store.put(stored, stored, next);
    } catch (error) {
      if (!(error instanceof StaleWriteError)) throw error;
      await this.#write(name, condition);
    }
  }
}

/**
 * Whether a response would send this server's clients, and their credentials, elsewhere. As kube-aggregator decides it
 * (`RejectForwardingRedirects`): 304 and others without a `Location` are passed on.
 */
export function isRedirection({ statusCode = 0, headers }: IncomingMessage): boolean {
  return statusCode >= 300 && statusCode < 400 && (headers.location ?? "") !== "";
}

export function redirectionRefused(name: string): StatusError {
  const message = `APIService ${name}: the backend attempted to redirect this request, which is not permitted`;
  return new StatusError({ code: 502, message });
}

const versionOf = ({ spec: { group = "", version = "", versionPriority = 0 } }: ApiService) => ({
  group,
  version,
  versionPriority,
});
