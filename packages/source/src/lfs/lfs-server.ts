/** The batch API of Git LFS (git-lfs, "Git LFS Batch API"), as far as files are fetched. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { type IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { GitError, SourceRefused, unreachableServer } from "../git-error.ts";
import { denied } from "../git-server.ts";
import { guardedRequest, type GuardedOptions } from "./guarded-request.ts";
import { type LfsPointer } from "./pointer.ts";

export interface LfsServer {
  /** Of the API, without `/objects/batch`. */
  url: string;
  /** The login, which the API's own origin is shown, and no other. */
  headers: Record<string, string>;
  options: GuardedOptions;
}

/** Where an object is, or why there is none. */
export type LfsObject = { href: string; header: Record<string, string> } | { problem: string };

/** A file cannot be fetched, and could not be at the next attempt either. */
export class LfsRefusal extends Error {}

const mediaType = "application/vnd.git-lfs+json";
const maxAnswerBytes = 4 * 1024 ** 2;
/** Objects in one question. */
export const maxBatch = 100;

/** Asks for objects. Throws an `LfsRefusal` where the server does not offer the API or lets nobody in, and a `GitError` otherwise. */
export async function askForObjects(
  server: LfsServer,
  pointers: readonly LfsPointer[],
): Promise<Map<string, LfsObject>> {
  const response = await lasting(
    guardedRequest(
      {
        url: `${server.url.replace(/\/$/, "")}/objects/batch`,
        method: "POST",
        headers: { accept: mediaType, "content-type": mediaType, ...server.headers },
        body: JSON.stringify({
          operation: "download",
          transfers: ["basic"],
          objects: pointers.map(({ oid, size }) => ({ oid, size })),
          hash_algo: "sha256",
        }),
      },
      server.options,
    ),
  );
  const { statusCode = 0 } = response;
  const text = await textOf(response);
  assertAnswer(statusCode, "the server does not offer the LFS API");
  const objects = objectsIn(text);
  return new Map(pointers.map(({ oid }) => [oid, placeOf(oid, objects)]));
}

/** Writes an object's content to a file. Throws as `askForObjects` does, and a `SourceRefused` for content that is not the object's. */
export async function download(
  { href, header }: { href: string; header: Record<string, string> },
  { oid, size }: LfsPointer,
  file: string,
  server: LfsServer,
): Promise<void> {
  const url = URL.canParse(href, server.url) ? new URL(href, server.url).href : href;
  const isOwn = URL.canParse(url) && new URL(url).origin === new URL(server.url).origin;
  const hasOwn = Object.keys(header).some((name) => name.toLowerCase() === "authorization");
  const headers = { ...(isOwn && !hasOwn && server.headers), ...header };
  const response = await lasting(guardedRequest({ url, method: "GET", headers }, server.options));
  if (response.statusCode !== 200) {
    response.destroy();
    assertAnswer(response.statusCode ?? 0, "the server does not have it");
  }
  const hash = createHash("sha256");
  let received = 0;
  const counted = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      received += chunk.length;
      if (received > size) throw new SourceRefused("it is larger than its pointer says");
      hash.update(chunk);
      yield chunk;
    }
  };
  const written = createWriteStream(file);
  try {
    await pipeline(response, counted, written);
  } catch (cause) {
    // It may be about to be created, in a directory that is removed next.
    if (!written.closed) await once(written, "close");
    if (cause instanceof GitError) throw cause;
    throw new GitError("temporary", unreachableServer, { cause });
  }
  if (received < size || hash.digest("hex") !== oid)
    throw new SourceRefused("what its server sent is not what its pointer names");
}

/** Addresses that are not asked, and URLs that are none, are the same at the next attempt. */
async function lasting<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof GitError) || error instanceof SourceRefused) throw error;
    if (error.failure === "temporary" && error.message !== denied) throw error;
    throw new LfsRefusal(error.message.replace("source.gitRepository.url", "its URL"));
  }
}

function assertAnswer(status: number, absent: string): void {
  if (status === 200) return;
  if (status === 401 || status === 403)
    throw new LfsRefusal("the LFS server wants other credentials, or any");
  if (status === 408 || status === 429 || (status >= 500 && status !== 501))
    throw new GitError("temporary", `the LFS server answered ${status}`);
  throw new LfsRefusal(`${absent} (HTTP ${status})`);
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxAnswerBytes) throw new LfsRefusal("the LFS server's answer is too large");
      chunks.push(chunk);
    }
  } catch (cause) {
    if (cause instanceof LfsRefusal) throw cause;
    throw new GitError("temporary", unreachableServer, { cause });
  }
  return Buffer.concat(chunks).toString();
}

interface Answered {
  oid?: unknown;
  error?: { code?: unknown };
  actions?: { download?: { href?: unknown; header?: unknown } };
}

function objectsIn(text: string): Answered[] {
  try {
    const { objects, transfer } = JSON.parse(text) as { objects?: unknown; transfer?: unknown };
    if (Array.isArray(objects) && (transfer === undefined || transfer === "basic"))
      return objects as Answered[];
  } catch {
    // A page for people, for example.
  }
  throw new LfsRefusal("the server does not offer the LFS API");
}

function placeOf(oid: string, objects: readonly Answered[]): LfsObject {
  const found = objects.find((each) => each?.oid === oid);
  const code = Number(found?.error?.code);
  if (code >= 500) throw new GitError("temporary", `the LFS server answered ${code}`);
  const { href, header } = found?.actions?.download ?? {};
  if (found?.error || typeof href !== "string")
    return { problem: `the server does not have it${code > 0 ? ` (${code})` : ""}` };
  return { href, header: headersIn(header) };
}

/** Headers that a server asks for, without those that decide how a request is read. */
export function headersIn(header: unknown): Record<string, string> {
  const own = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|proxy-.*)$/i;
  return Object.fromEntries(
    Object.entries((header ?? {}) as Record<string, unknown>).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string" && !own.test(entry[0]),
    ),
  );
}
