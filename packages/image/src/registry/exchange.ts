import { type IncomingMessage, type ServerResponse } from "node:http";
import { type Grant, tenantOf } from "./access/grants.ts";
import { type Aliases } from "./former-names/aliases.ts";
import { type BlobStore } from "./blob-store.ts";
import { type FairShares } from "./fair-shares.ts";
import { RegistryFailure } from "./registry-failure.ts";
import { type RepositoryStore } from "./repository-store.ts";
import { type StorageQuota } from "./storage-quota.ts";
import { type Uploads } from "./upload.ts";

/** What a registry keeps. */
export interface Stores {
  blobs: BlobStore;
  repositories: RepositoryStore;
  aliases: Aliases;
  uploads: Uploads;
  quota: StorageQuota;
  /** Bytes of manifests and lists that are in memory, on their way in or out. */
  memory: FairShares;
}

/** One request with all that answering it takes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  query: URLSearchParams;
  /** What the login of the request is good for. */
  grant: Grant;
  /**
   * Rejects when the login has ended since the request began. Its body may have taken long: to be called before anything is
   * stored.
   */
  confirmGrant(): Promise<void>;
  /**
   * Changes the namespace's repositories, whose owner cannot change meanwhile. Rejects when another one
   * is by now.
   */
  asOwner<T>(change: () => T | Promise<T>): Promise<T>;
  stores: Stores;
}

/**
 * Counts bytes as being in memory until the answer has left, or the connection is gone: clients may send and read as
 * slowly as they like. What it returns throws TOOMANYREQUESTS when the login's tenant has its share.
 */
export function memoryOf({ response, grant, stores }: Exchange): (bytes: number) => void {
  const tenant = tenantOf(grant);
  let held = 0;
  response.once("close", () => {
    stores.memory.giveBack(tenant, held);
    held = 0;
  });
  return (bytes) => {
    if (response.destroyed) return;
    stores.memory.take(tenant, bytes, "too many manifests are on their way");
    held += bytes;
  };
}

export function sendJson(
  { request, response }: Pick<Exchange, "request" | "response">,
  value: unknown,
  options: { status?: number; type?: string } = {},
): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(options.status ?? 200, {
    "content-type": options.type ?? "application/json",
    "content-length": body.length,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

export function allowOnly(method: string | undefined, ...allowed: string[]): void {
  if (method !== undefined && allowed.includes(method)) return;
  throw new RegistryFailure("UNSUPPORTED", `${method} is not allowed here`, {
    headers: { allow: allowed.join(", ") },
  });
}

/** A body as it comes. Giving up in the middle leaves the connection, so that the answer can be sent. */
export function chunksOf(request: IncomingMessage): AsyncIterable<Buffer> {
  return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
}
