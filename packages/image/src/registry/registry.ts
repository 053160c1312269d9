import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { type RegistryUsage } from "@spry/function";
import { type Clock, systemClock } from "../clock.ts";
import { type Logger, silentLogger } from "../log.ts";
import { authenticate } from "./access/authentication.ts";
import { authorized } from "./access/authorization.ts";
import { type Grant } from "./access/grants.ts";
import { type Logins } from "./access/logins.ts";
import { Owners } from "./access/owners.ts";
import { TenantCheck, type Tenants } from "./access/tenants.ts";
import { allowOnly, type Exchange, sendJson } from "./exchange.ts";
import { serveBlob, startUpload, continueUpload } from "./blob-requests.ts";
import { Aliases } from "./former-names/aliases.ts";
import { type FormerUses, moveOver } from "./former-names/move-over.ts";
import { BlobStore } from "./blob-store.ts";
import { clean, type CleaningResult } from "./cleaning.ts";
import { FairShares } from "./fair-shares.ts";
import { serveManifest } from "./manifest-requests.ts";
import { listReferrers, listRepositories, listTags } from "./list-requests.ts";
import { RegistryFailure } from "./registry-failure.ts";
import { RepositoryStore } from "./repository-store.ts";
import { RegistryMetrics } from "./metrics.ts";
import { defaultRetention, type ImagesInUse, type RetentionPolicy } from "./retention.ts";
import { routeOf } from "./routes.ts";
import { StorageQuota } from "./storage-quota.ts";
import { Uploads } from "./upload.ts";
import { usageOf } from "./usage.ts";

/** For manifests that are being sent or answered: a real one has a few KiB, the largest 4 MiB. */
const manifestMemory = 64 * 1024 * 1024;

export interface RegistryOptions {
  /** Recognizes logins. Without it, everyone may do everything. */
  logins?: Pick<Logins, "grantOf"> | undefined;
  /** Says whether those whom the logins were made for are still there. Without it, they are. */
  tenants?: Tenants | undefined;
  /** Where everything is kept; created when it does not exist. One process at a time. */
  dir: string;
  /** Largest blob in bytes. Default 8 GiB. */
  blobSizeLimit?: number;
  /** An upload without activity for this time is removed. Default one hour. */
  uploadExpiryMs?: number;
  /** How much may be stored, in bytes; beyond it uploads are refused with DENIED. Default 20 GiB. */
  quotaBytes?: number;
  /** Called, often, while so much is stored that a cleaning is due. */
  onPressure?: () => void;
  /** What a cleaning keeps in addition to what is in use. */
  retention?: Partial<RetentionPolicy>;
  log?: Logger;
  clock?: Clock;
}

export interface RegistryListenOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  /** Sets the limits of its connections; without it, there are none. */
  bound?: (server: Server) => void;
}

/** A registry by the OCI distribution specification 1.1, on local disk. */
export interface Registry {
  /** For a `node:http` server: bodies are streamed both ways. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  listen(o: RegistryListenOptions): Promise<{ port: number; close(): Promise<void> }>;
  /**
   * Removes images, dependency layers and content that are not needed any more (`RetentionPolicy`). Requests continue
   * meanwhile; it may be killed at any point. One at a time: a call during another shares its result.
   */
  clean(inUse: ImagesInUse): Promise<CleaningResult>;
  /** How much is stored, by repository, and why. `inUse` as for `clean`. */
  usage(inUse: ImagesInUse): Promise<RegistryUsage>;
  /** What `GET /metrics` answers the platform's login: Prometheus' text exposition format 0.0.4. */
  metrics(): string;
  /**
   * Gives what a registry of an earlier version has stored the names of today, before anything is served. `uses` is asked when there
   * is something to move. How many repositories there were.
   */
  moveOver(uses: () => Promise<FormerUses>): Promise<number>;
  close(): Promise<void>;
}

export function createRegistry(options: RegistryOptions): Registry {
  const { dir, clock = systemClock, log = silentLogger } = options;
  const quota = new StorageQuota(options.quotaBytes ?? 20 * 1024 ** 3, options.onPressure);
  const blobs = new BlobStore(dir, quota, clock, log);
  const uploads = new Uploads(blobs, quota, {
    clock,
    sizeLimit: options.blobSizeLimit ?? 8 * 1024 ** 3,
    expiryMs: options.uploadExpiryMs ?? 3_600_000,
  });
  const repositories = new RepositoryStore(dir, blobs.scratch, clock);
  const aliases = new Aliases(dir, blobs.scratch);
  const memory = new FairShares({ total: manifestMemory });
  const stores = { blobs, repositories, aliases, uploads, quota, memory };
  const policy = { ...defaultRetention, ...options.retention };
  const metrics = new RegistryMetrics(stores);
  const owners = new Owners(dir, blobs.scratch, repositories, quota.uses);
  const tenants = new TenantCheck(options.tenants, owners, clock);
  const counted = blobs.count().then(() => quota.uses.count(repositories, blobs));
  const counting = counted.catch((error: unknown) => log.error({ error }, "counting blobs failed"));
  let cleaning: Promise<CleaningResult> | undefined;

  async function grantOf(request: IncomingMessage): Promise<Grant> {
    if (!options.logins) return { for: "platform" };
    const grant = authenticate(request, options.logins);
    await tenants.check(grant);
    return grant;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader("docker-distribution-api-version", "registry/2.0");
    response.once("close", () => metrics.answered(request.method, response.statusCode));
    try {
      const grant = await grantOf(request);
      const url = targetOf(request);
      if (url.pathname === "/metrics") return sendMetrics(request, response, grant, metrics);
      const exchange = {
        request,
        response,
        query: url.searchParams,
        grant,
        confirmGrant: () => tenants.check(grant),
        asOwner: <T>(change: () => T | Promise<T>) => tenants.asOwner(grant, change),
        stores,
      };
      await dispatch(exchange, url.pathname);
    } catch (error) {
      refuse(request, response, diskFull(error) ?? error, log);
    }
  }

  return {
    handle,
    listen: (o) => listen(handle, o),
    clean: (inUse) =>
      (cleaning ??= counting
        .then(() => clean(stores, inUse, policy, clock, log))
        .finally(() => (cleaning = undefined))
        .then(
          (result) => {
            metrics.cleaned(result);
            return result;
          },
          (error: unknown) => {
            metrics.cleaned(undefined);
            throw error;
          },
        )),
    usage: (inUse) => usageOf(stores, inUse, policy, clock, log),
    metrics: () => metrics.render(),
    moveOver: (uses) => moveOver(dir, stores, aliases, uses),
    close: () => uploads.close(),
  };
}

/** The URL of a request. Two slashes at its beginning are part of the path, and do not begin a host. */
function targetOf({ url = "/" }: IncomingMessage): URL {
  const target = URL.parse(url.startsWith("/") ? `http://registry.internal${url}` : url);
  if (target) return target;
  throw new RegistryFailure("UNSUPPORTED", "the target is not a valid path", { status: 400 });
}

function sendMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  grant: Grant,
  metrics: RegistryMetrics,
): void {
  if (grant.for !== "platform")
    throw new RegistryFailure("DENIED", "only the platform's own login may read the metrics");
  allowOnly(request.method, "GET", "HEAD");
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
  response.end(request.method === "HEAD" ? undefined : metrics.render());
}

async function dispatch(exchange: Exchange, pathname: string): Promise<void> {
  const route = authorized(exchange, routeOf(pathname));
  switch (route?.kind) {
    case "base":
      return sendJson(exchange, {});
    case "catalog":
      return listRepositories(exchange);
    case "blob":
      return serveBlob(exchange, route);
    case "uploads":
      return startUpload(exchange, route);
    case "upload":
      return continueUpload(exchange, route);
    case "manifest":
      return serveManifest(exchange, route);
    case "tags":
      return listTags(exchange, route);
    case "referrers":
      return listReferrers(exchange, route);
    case undefined:
      throw new RegistryFailure("UNSUPPORTED", "no such endpoint", { status: 404 });
  }
}

/** The disk may be smaller than the quota. */
function diskFull(error: unknown): RegistryFailure | undefined {
  if (!["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
  return new RegistryFailure("DENIED", "the disk of the registry is full: make room on it");
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  log: Logger,
): void {
  const { method, url } = request;
  const known = error instanceof RegistryFailure;
  if (known) log.debug({ method, url, code: error.code }, "request refused");
  else log.error({ method, url, error }, "request failed");
  // Too late for a status: cutting the connection is the only way to say that the body is not whole.
  if (response.headersSent || response.destroyed) return void response.destroy();
  if (known)
    for (const [name, value] of Object.entries(error.headers))
      response.setHeader(name, value ?? "");
  // A client reads the answer when it has sent its body: it is let do so, for a moment.
  if (!request.complete) setTimeout(() => request.complete || request.destroy(), 5000).unref();
  const body = known
    ? error.toJSON()
    : { errors: [{ code: "UNKNOWN", message: "internal error" }] };
  sendJson({ request, response }, body, { status: known ? error.status : 500 });
}

async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  { host, port, bound }: RegistryListenOptions,
): Promise<{ port: number; close(): Promise<void> }> {
  // A large blob over a slow line takes as long as it takes; a silent connection does not.
  const server = createServer(
    { requestTimeout: 0, headersTimeout: 30_000, keepAliveTimeout: 65_000, noDelay: true },
    (request, response) => void handle(request, response),
  );
  server.setTimeout(60_000);
  bound?.(server);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 1000).unref();
      }),
  };
}
