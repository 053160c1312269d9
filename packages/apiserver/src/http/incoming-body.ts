import { type IncomingMessage } from "node:http";
import { getHeapStatistics } from "node:v8";
import { StatusError } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { isLarge } from "../turns.ts";
import { type Lease, MemoryBudget } from "./memory-budget.ts";
import { ownerOf } from "./owner.ts";
import { maxBodyBytes } from "./request-body.ts";

const MiB = 1024 * 1024;
const firstBytes = 16 * 1024;
/** A large body is text, an object and the text of what is stored while it is worked on, besides itself. */
const copiesInUse = 3;

/** The budget of all bodies that a server receives and works on; by default a sixteenth of the heap. */
export function bodyBudget(bytes = getHeapStatistics().heap_size_limit / 16): MemoryBudget {
  return new MemoryBudget(Math.min(Math.max(bytes, 16 * MiB), 256 * MiB));
}

/** A body, and the memory that it holds until `close`. */
export interface IncomingBody {
  bytes: Buffer | undefined;
  close(): void;
}

const empty: IncomingBody = { bytes: undefined, close() {} };

/**
 * Reads a body. A `StatusError` 413 when it is too long, 429 when the memory for bodies is used up, mostly by this user. The rest
 * of a body that is refused is thrown away as it comes: a client that is still writing would not see an answer on a connection that
 * is cut.
 */
export function readBody(
  incoming: IncomingMessage,
  budget: MemoryBudget,
  user: UserInfo,
): Promise<IncomingBody> {
  if (incoming.method === "GET" || incoming.method === "HEAD") return Promise.resolve(empty);
  return new Promise((resolve, reject) => {
    let isDone = false;
    const refuse = (error: Error) => {
      isDone = true;
      body.drop();
      lease.close();
      reject(error);
    };
    const lease = budget.open(ownerOf(user), () => refuse(tooManyBodies()));
    const body = new GrowingBuffer(lease);
    incoming.on("data", (chunk: Buffer) => {
      if (isDone) return;
      if (body.length + chunk.length > maxBodyBytes) refuse(tooLong());
      else body.add(chunk);
    });
    incoming.on("end", () => {
      if (isDone) return;
      const more = isLarge(body) ? body.length * copiesInUse : 0;
      if (!lease.use(more)) return;
      isDone = true;
      resolve({ bytes: body.whole(), close: () => lease.close() });
    });
    incoming.on("error", (error) => isDone || refuse(error));
    incoming.on("close", () => isDone || refuse(new Error("the client went away")));
  });
}

/** Chunks one after the other. Chunks of a byte each are not kept as they are: each would take hundreds. */
class GrowingBuffer {
  readonly #lease: Lease;
  #buffer: Buffer | undefined;
  length = 0;

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  add(chunk: Buffer): void {
    if (!this.#buffer) {
      if (!this.#lease.grow(chunk.length)) return;
      this.#buffer = chunk;
      this.length = chunk.length;
      return;
    }
    const length = this.length + chunk.length;
    if (length > this.#buffer.length) {
      const capacity = Math.max(firstBytes, Math.min(length * 2, maxBodyBytes));
      if (!this.#lease.grow(capacity - this.#buffer.length)) return;
      const larger = Buffer.allocUnsafeSlow(capacity);
      larger.set(this.whole() ?? []);
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.length);
    this.length = length;
  }

  whole(): Buffer | undefined {
    return this.#buffer?.subarray(0, this.length);
  }

  drop(): void {
    this.#buffer = undefined;
    this.length = 0;
  }
}

function tooLong(): StatusError {
  return new StatusError({
    code: 413,
    message: `Request entity too large: limit is ${maxBodyBytes}`,
  });
}

function tooManyBodies(): StatusError {
  return new StatusError({
    code: 429,
    message:
      "the bodies of requests under way use up the memory for them, and those of this user, or namespace, the most: send fewer at a time",
    details: { retryAfterSeconds: 1 },
  });
}
