import { deepEqual } from "@spry/kube";
import { copyOf } from "../json-copy.ts";

/** More operations than users or tools write. */
export const maxPatchOperations = 10_000;
/** What the copies of one patch may add up to: each may double the document otherwise. As kube-apiserver, the limit of a body. */
const maxCopiedBytes = 3 * 1024 * 1024;

type Container = Record<string, unknown> | unknown[];

/** An operation that is none, or does not fit the document. */
export class JsonPatchProblem extends Error {
  override readonly name = "JsonPatchProblem";
}

/**
 * The document after a JSON patch (RFC 6902); neither is changed. Lenient and strict where Kubernetes'
 * library (`gopkg.in/evanphx/json-patch`) is, and in its words: a replacement may add a member, a negative index
 * counts from the end. Throws a `JsonPatchProblem`.
 */
export function applyJsonPatch(document: unknown, operations: readonly unknown[]): unknown {
  const patch = new JsonPatch(copyOf(document));
  for (const operation of operations) patch.apply(operation);
  return patch.document;
}

class JsonPatch {
  document: unknown;
  #copied = 0;

  constructor(document: unknown) {
    this.document = document;
  }

  apply(operation: unknown): void {
    const { op, path, from, value = null } = (operation ?? {}) as Record<string, unknown>;
    const kind = typeof op === "string" ? op : "unknown";
    if (typeof path !== "string") throw missing(`${kind} operation failed to decode path`);
    switch (kind) {
      case "add":
        return this.#add(kind, path, copyOf(value));
      case "remove":
        return void this.#remove(kind, path);
      case "replace":
        return this.#replace(path, copyOf(value));
      case "test":
        return this.#test(path, value);
      case "move":
        return this.#add(kind, path, this.#remove(kind, textOf(kind, from)));
      case "copy":
        return this.#add(kind, path, this.#copyOf(textOf(kind, from)));
    }
    throw new JsonPatchProblem(`Unexpected kind: ${kind}`);
  }

  #add(kind: string, path: string, value: unknown): void {
    const { owner, key } = this.#find(kind, path);
    if (!Array.isArray(owner)) owner[key] = value;
    else if (key === "-") owner.push(value);
    else owner.splice(indexIn(owner.length + 1, key), 0, value);
  }

  #remove(kind: string, path: string): unknown {
    const { owner, key } = this.#find(kind, path);
    if (Array.isArray(owner)) return owner.splice(indexIn(owner.length, key), 1)[0];
    if (!Object.hasOwn(owner, key)) {
      const problem = `Unable to remove nonexistent key: ${key}`;
      throw missing(`error in ${kind} for path: '${path}': ${problem}`);
    }
    const value = owner[key];
    delete owner[key];
    return value;
  }

  #replace(path: string, value: unknown): void {
    if (path === "") {
      if (typeof value !== "object" || value === null)
        throw new JsonPatchProblem("replace operation value must be object or array");
      this.document = value;
      return;
    }
    const { owner, key } = this.#find("replace", path);
    if (Array.isArray(owner)) owner[indexIn(owner.length, key)] = value;
    else owner[key] = value;
  }

  #test(path: string, value: unknown): void {
    const found = path === "" ? this.document : this.#get("test", path);
    if (deepEqual(found ?? null, value)) return;
    throw new JsonPatchProblem(`testing value ${path} failed: test failed`);
  }

  #copyOf(from: string): unknown {
    const value = this.#get("copy", from) ?? null;
    this.#copied += JSON.stringify(value).length;
    if (this.#copied > maxCopiedBytes) {
      const sizes = `the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${maxCopiedBytes}`;
      throw new JsonPatchProblem(`Unable to complete the copy, ${sizes}`);
    }
    return copyOf(value);
  }

  #get(kind: string, path: string): unknown {
    const { owner, key } = this.#find(kind, path);
    return memberOf(owner, key);
  }

  /** What holds the value at the end of a path (RFC 6901), whether the value is there or not. */
  #find(kind: string, path: string): { owner: Container; key: string } {
    const keys = path
      .split("/")
      .slice(1)
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const key = keys.pop();
    let owner: unknown = path.startsWith("/") ? this.document : undefined;
    for (const each of keys) owner = isContainer(owner) ? memberOf(owner, each) : undefined;
    // Assigning to `__proto__` would change an object's prototype, not its data.
    if (key === undefined || key === "__proto__" || !isContainer(owner))
      throw missing(`${kind} operation does not apply: doc is missing path: ${quoted(kind, path)}`);
    return { owner, key };
  }
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

/** Own members only: an object's prototype is not part of a document. */
function memberOf(owner: Container, key: string): unknown {
  if (Array.isArray(owner)) return owner[indexIn(owner.length, key)];
  return Object.hasOwn(owner, key) ? owner[key] : undefined;
}

/** The place that a key names among `count`. */
function indexIn(count: number, key: string): number {
  const given = /^[+-]?\d+$/.test(key) ? Number(key) : Number.NaN;
  const index = given < 0 ? given + count : given;
  if (index >= 0 && index < count) return index;
  throw new JsonPatchProblem(`Unable to access invalid index: ${key}: invalid index referenced`);
}

function textOf(kind: string, from: unknown): string {
  if (typeof from === "string") return from;
  throw missing(`${kind} operation failed to decode from`);
}

function missing(problem: string): JsonPatchProblem {
  return new JsonPatchProblem(`${problem}: missing value`);
}

/** The original quotes the path in two of its messages only. */
function quoted(kind: string, path: string): string {
  return kind === "add" || kind === "remove" ? JSON.stringify(path) : path;
}
