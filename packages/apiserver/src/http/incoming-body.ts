import { type IncomingMessage } from "node:http";
import { getHeapStatistics } from "node:v8";
import { StatusError } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { isLarge } from "../turns.ts";
import { type BodyTurns } from "./body-turns.ts";
import { type Lease, MemoryBudget } from "./memory-budget.ts";
import { ownerOf } from "./owner.ts";
import { maxBodyBytes } from "./request-body.ts";

const MiB = 1024 * 1024;
const firstBytes = 16 * 1024;
const blockBytes = 64 * 1024;
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
 * of a body that is refused is thrown away, as far as `BodyTurns.discard` says.
 */
export function readBody(
  incoming: IncomingMessage,
  budget: MemoryBudget,
  user: UserInfo,
  turns: BodyTurns,
): Promise<IncomingBody> {
  const owner = ownerOf(user);
  if (incoming.method === "GET" || incoming.method === "HEAD") {
    turns.discard(incoming, owner);
    return Promise.resolve(empty);
  }
  return new Promise((resolve, reject) => {
    let isDone = false;
    const refuse = (error: Error) => {
      isDone = true;
      body.drop();
      lease.close();
      turns.discard(incoming, owner);
      reject(error);
    };
    const lease = budget.open(owner, () => refuse(tooManyBodies()));
    const body = new GrowingBuffer(lease);
    turns.receive(incoming, owner, (chunk) => {
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

/**
 * Chunks one after the other. Chunks of a byte each are not kept as they are: each would take hundreds. Nothing is copied before all
 * is here: each copy of a body whose end never comes would be work for the garbage collector, and so for everybody.
 */
class GrowingBuffer {
  readonly #lease: Lease;
  #blocks: Buffer[] = [];
  /** Free bytes of the last block. */
  #free = 0;
  length = 0;

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  add(chunk: Buffer): void {
    const last = this.#blocks.at(-1);
    const fitting = Math.min(this.#free, chunk.length);
    last?.set(chunk.subarray(0, fitting), last.length - this.#free);
    this.#free -= fitting;
    const rest = chunk.subarray(fitting);
    if (rest.length > 0 && !this.#addBlock(rest)) return;
    this.length += chunk.length;
  }

  #addBlock(content: Buffer): boolean {
    const isFirst = this.#blocks.length === 0;
    const size = Math.max(
      content.length,
      isFirst ? 0 : this.length < blockBytes ? firstBytes : blockBytes,
    );
    if (!this.#lease.grow(size)) return false;
    const block = isFirst ? content : Buffer.allocUnsafeSlow(size);
    if (!isFirst) block.set(content);
    this.#blocks.push(block);
    this.#free = size - content.length;
    return true;
  }

  whole(): Buffer | undefined {
    if (this.#blocks.length > 1) this.#blocks = [Buffer.concat(this.#blocks, this.length)];
    this.#free = 0;
    return this.#blocks[0];
  }

  drop(): void {
    this.#blocks = [];
    this.#free = 0;
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
