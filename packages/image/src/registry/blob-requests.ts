import { pipeline } from "node:stream/promises";
import { type Digest } from "../digest.ts";
import { isRepository } from "../image-name.ts";
import { allows, tenantOf } from "./access/grants.ts";
import { allowOnly, chunksOf, type Exchange } from "./exchange.ts";
import { RegistryFailure } from "./registry-failure.ts";
import { digestIn } from "./routes.ts";
import { rangeOf } from "./upload.ts";

/** GET, HEAD and DELETE of `/v2/<name>/blobs/<digest>`. */
export async function serveBlob(
  { request, response, stores }: Exchange,
  { repository, digest }: { repository: string; digest: Digest },
): Promise<void> {
  const size = stores.repositories.hasBlob(repository, digest)
    ? stores.blobs.sizeOf(digest)
    : undefined;
  if (size === undefined)
    throw new RegistryFailure("BLOB_UNKNOWN", `no blob ${digest} in ${repository}`);
  if (request.method === "DELETE") {
    stores.repositories.removeBlob(repository, digest);
    response.writeHead(202, { "content-length": 0 }).end();
    return;
  }
  allowOnly(request.method, "GET", "HEAD", "DELETE");
  // A client asks before it sends: what it finds must still be there when its manifest comes.
  if (request.method === "HEAD") {
    stores.blobs.touch(digest);
    stores.repositories.touchBlob(repository, digest);
  }
  if (!(await stores.blobs.holds(digest)))
    throw new RegistryFailure("BLOB_UNKNOWN", `blob ${digest} was damaged and has been removed`);
  const range = rangeIn(request.headers.range, size);
  const { start, end } = range ?? { start: 0, end: size - 1 };
  response.writeHead(range ? 206 : 200, {
    "content-type": "application/octet-stream",
    "content-length": end - start + 1,
    "docker-content-digest": digest,
    "accept-ranges": "bytes",
    etag: `"${digest}"`,
    ...(range ? { "content-range": `bytes ${start}-${end}/${size}` } : {}),
  });
  if (request.method === "HEAD" || size === 0) response.end();
  else if (size <= 64 * 1024) response.end(stores.blobs.read(digest)?.subarray(start, end + 1));
  // A client that disconnects midway is not an error of the registry.
  else
    await pipeline(stores.blobs.stream(digest, { start, end }), response).catch(() =>
      response.destroy(),
    );
}

/** POST of `/v2/<name>/blobs/uploads/`: opens an upload, takes a whole blob, or mounts one. */
export async function startUpload(
  exchange: Exchange,
  { repository }: { repository: string },
): Promise<void> {
  const { request, response, query, stores } = exchange;
  allowOnly(request.method, "POST");
  const mount = query.get("mount");
  if (mount !== null && (await mountBlob(exchange, repository, digestIn(mount))))
    return created(exchange, repository, digestIn(mount));

  const digest = query.get("digest");
  const expected = digest === null ? undefined : digestIn(digest);
  const id = await stores.uploads.create(repository, tenantOf(exchange.grant));
  if (expected) {
    try {
      return await finish(exchange, { repository, id }, expected);
    } catch (error) {
      // No client knows its id, so none could continue it.
      await stores.uploads.cancel(repository, id);
      throw error;
    }
  }
  response.writeHead(202, {
    location: uploadPath(repository, id),
    range: rangeOf(0),
    "docker-upload-uuid": id,
    "content-length": 0,
  });
  response.end();
}

/** GET, PATCH, PUT and DELETE of `/v2/<name>/blobs/uploads/<id>`. */
export async function continueUpload(
  exchange: Exchange,
  upload: { repository: string; id: string },
): Promise<void> {
  const { request, response, query, stores } = exchange;
  const { repository, id } = upload;
  switch (request.method) {
    case "GET":
      return uploadStatus(exchange, upload, 204, stores.uploads.sizeOf(repository, id));
    case "PATCH": {
      const size = await stores.uploads.append(
        repository,
        id,
        chunksOf(request),
        startOf(exchange),
      );
      return uploadStatus(exchange, upload, 202, size);
    }
    case "PUT":
      stores.uploads.sizeOf(repository, id);
      return finish(exchange, upload, digestIn(query.get("digest") ?? ""));
    case "DELETE":
      stores.uploads.sizeOf(repository, id);
      await stores.uploads.cancel(repository, id);
      response.writeHead(204).end();
      return;
    default:
      allowOnly(request.method, "GET", "PATCH", "PUT", "DELETE");
  }
}

async function mountBlob(exchange: Exchange, repository: string, digest: Digest): Promise<boolean> {
  const { query, stores, grant } = exchange;
  const from = query.get("from");
  // Without `from`, any repository that may be read will do. One that may not be read counts as one that does not
  // exist.
  const named = from === null ? stores.repositories.list() : [from].filter(isRepository);
  const sources = named.filter((source) => allows(grant, "pull", source));
  if (!sources.some((source) => stores.repositories.hasBlob(source, digest))) return false;
  // Only now: how long it takes must not say whether another namespace has the blob.
  stores.blobs.touch(digest);
  if (!(await stores.blobs.holds(digest))) return false;
  await exchange.confirmGrant();
  await exchange.asOwner(() => {
    stores.blobs.touch(digest);
    addBlob(exchange, repository, digest);
  });
  return true;
}

async function finish(
  exchange: Exchange,
  { repository, id }: { repository: string; id: string },
  digest: Digest,
): Promise<void> {
  const { request, stores } = exchange;
  await stores.uploads.append(repository, id, chunksOf(request), startOf(exchange));
  try {
    await exchange.confirmGrant();
  } catch (error) {
    await stores.uploads.cancel(repository, id);
    throw error;
  }
  await stores.uploads.finish(repository, id, digest);
  await exchange.asOwner(() => addBlob(exchange, repository, digest));
  created(exchange, repository, digest);
}

function addBlob({ stores }: Exchange, repository: string, digest: Digest): void {
  stores.repositories.addBlob(repository, digest);
  stores.quota.uses.add(repository, digest, stores.blobs.sizeOf(digest) ?? 0);
}

function created({ response }: Exchange, repository: string, digest: Digest): void {
  response.writeHead(201, {
    location: `/v2/${repository}/blobs/${digest}`,
    "docker-content-digest": digest,
    "content-length": 0,
  });
  response.end();
}

function uploadStatus(
  { response }: Exchange,
  { repository, id }: { repository: string; id: string },
  status: number,
  size: number,
): void {
  const headers = {
    location: uploadPath(repository, id),
    range: rangeOf(size),
    "docker-upload-uuid": id,
  };
  response.writeHead(status, status === 204 ? headers : { ...headers, "content-length": 0 });
  response.end();
}

function uploadPath(repository: string, id: string): string {
  return `/v2/${repository}/blobs/uploads/${id}`;
}

/** First byte of a chunk, from `Content-Range: <first>-<last>`; undefined when the client does not say. */
function startOf({ request }: Exchange): number | undefined {
  const header = request.headers["content-range"];
  if (header === undefined) return undefined;
  const match = /^(?:bytes )?(\d{1,15})-(\d{1,15})(?:\/.*)?$/.exec(header);
  if (!match)
    throw new RegistryFailure("BLOB_UPLOAD_INVALID", "expected Content-Range: <first>-<last>");
  return Number(match[1]);
}

/** The one range of a request; several, or another unit, mean the whole, as RFC 9110 allows. */
function rangeIn(
  header: string | undefined,
  size: number,
): { start: number; end: number } | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "");
  if (!match || (!match[1] && !match[2])) return undefined;
  const start = match[1] ? Number(match[1]) : Math.max(0, size - Number(match[2]));
  const end = match[1] && match[2] ? Math.min(Number(match[2]), size - 1) : size - 1;
  if (start <= end) return { start, end };
  throw new RegistryFailure(
    "SIZE_INVALID",
    `the requested range is not within the blob, which has ${size} bytes`,
    {
      status: 416,
      headers: { "content-range": `bytes */${size}` },
    },
  );
}
