import { crc32 } from "node:zlib";
import { offerText, type UnknownObject } from "@spry/kube";
import { parseJson } from "../json.ts";

/** What an object takes besides its text: itself, its key, its place in its collection. */
const objectBytes = 400;
const wide = /[\u0100-\uffff]/;

/**
 * One version of one object. The text is what clients get; the parsed form is made when it is first
 * asked for and may be collected again, so that thousands of objects at rest cost only their text.
 */
export class StoredObject {
  readonly collection: string;
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  readonly json: string;
  /** What it takes in memory: a text with a character beyond Latin-1 takes two bytes for each. */
  readonly bytes: number;
  #parsed: WeakRef<UnknownObject> | undefined;

  constructor(
    place: { collection: string; namespace: string; name: string },
    revision: number,
    json: string,
    parsed?: UnknownObject,
  ) {
    this.collection = place.collection;
    this.namespace = place.namespace;
    this.name = place.name;
    this.revision = revision;
    this.json = json;
    this.bytes = bytesOf(json);
    if (parsed) this.#keep(parsed);
  }

  /** Shared by all readers: never change it. */
  get object(): UnknownObject {
    let object = this.#parsed?.deref();
    if (!object) {
      object = this.copy();
      this.#keep(object);
    }
    return object;
  }

  /** Clients in this process need not keep a text of their own. */
  #keep(object: UnknownObject): void {
    this.#parsed = new WeakRef(object);
    offerText(object.metadata.uid, this);
  }

  /** Whether this is what `object` gives: `json` is its text then. */
  holds(object: UnknownObject): boolean {
    return this.#parsed?.deref() === object;
  }

  /** The object for a writer to change. */
  copy(): UnknownObject {
    return parseJson(this.json) as UnknownObject;
  }

  get key(): string {
    return keyOf(this.namespace, this.name);
  }

  /** CRC-32 of all that is kept of it on disk: place, revision and text. */
  checksum(): number {
    const place = `${this.collection}\0${this.key}\0${this.revision}\0`;
    return crc32(this.json, crc32(place));
  }
}

/** What an object of this text takes in memory. */
export function bytesOf(json: string): number {
  return objectBytes + json.length * (wide.test(json) ? 2 : 1);
}

/** Sorts like etcd's keys: by namespace, then by name. */
export function keyOf(namespace: string, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}
