import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { StatusError } from "@spry/kube";
import { HttpResponse } from "../http/message.ts";
import { type Store } from "../store/store.ts";

/** Stores of which a copy is on its way: each takes as much disk as the store. */
const busy = new WeakSet<Store>();

/**
 * `GET /snapshot`: the whole store at one moment, as a file with which an API server can be started. An extension of
 * ours; like every path that is not a resource, it is open to those whom a rule allows to `get` it.
 */
export async function snapshotResponse(store: Store): Promise<HttpResponse> {
  if (busy.has(store)) {
    throw new StatusError({
      code: 429,
      reason: "TooManyRequests",
      message: "another backup is being taken: retry when it is done",
    });
  }
  busy.add(store);
  const dir = await mkdtemp(path.join(tmpdir(), "spry-snapshot-"));
  const done = async () => {
    busy.delete(store);
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const file = path.join(dir, "state.db");
    await store.snapshot(file);
    const { size } = await stat(file);
    const stream = createReadStream(file).once("close", () => void done());
    return new HttpResponse(Readable.toWeb(stream) as ReadableStream, {
      headers: { "content-type": "application/vnd.sqlite3", "content-length": String(size) },
    });
  } catch (error) {
    await done();
    throw error;
  }
}
