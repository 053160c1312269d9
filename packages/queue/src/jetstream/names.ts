import { createHash } from "node:crypto";

const digest = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 32);

/** More subjects than these are hashed again when they come back. */
const maxKnown = 10_000;

/**
 * What a queue's streams, subjects and consumers are called. Subjects, names and keys come from users; in NATS they may
 * contain neither dots, spaces nor wildcards, so they are hashed, or written as hexadecimal where they are listed.
 */
export class Names {
  readonly stream: string;
  readonly deadStream: string;
  readonly #prefix: string;
  readonly #known = new Map<string, string>();

  constructor(name: string) {
    this.#prefix = name;
    this.stream = name;
    this.deadStream = `${name}-dead`;
  }

  /** All that the stream takes. */
  get subjects(): string[] {
    return [`${this.#prefix}.m.*`, `${this.#prefix}.p.*`, `${this.#prefix}.r.*.*`];
  }
  get deadSubjects(): string {
    return `${this.#prefix}.d.*`;
  }
  /** Of messages that were appended. */
  get allMessages(): string {
    return `${this.#prefix}.m.*`;
  }
  get allPrivate(): string {
    return `${this.#prefix}.p.*`;
  }

  message(subject: string): string {
    const known = this.#known.get(subject);
    if (known !== undefined) return known;
    if (this.#known.size >= maxKnown) this.#known.clear();
    const name = `${this.#prefix}.m.${digest(subject)}`;
    this.#known.set(subject, name);
    return name;
  }
  /** Of messages of one consumer alone. */
  private(consumer: string): string {
    return `${this.#prefix}.p.${digest(consumer)}`;
  }
  dead(consumer: string): string {
    return `${this.#prefix}.d.${digest(consumer)}`;
  }
  durable(consumer: string): string {
    return digest(consumer);
  }
  /** Where it is announced that a consumer begins again; not in the stream. */
  again(consumer: string): string {
    return `${this.allAgain.slice(0, -1)}${digest(consumer)}`;
  }
  get allAgain(): string {
    return `${this.#prefix}.again.*`;
  }
  /** Of a deduplication key. */
  id(key: string): string {
    return digest(key);
  }
  record(bucket: string, key: string): string {
    return `${this.records(bucket).slice(0, -1)}${hex(key)}`;
  }
  /** Of all records of a bucket. */
  records(bucket: string): string {
    return `${this.#prefix}.r.${hex(bucket)}.*`;
  }
  keyOf(recordSubject: string): string {
    return Buffer.from(recordSubject.split(".").at(-1) ?? "", "hex")
      .toString("utf8")
      .slice(1);
  }
}

/** In the order of the texts' bytes, and never empty. */
const hex = (text: string): string => Buffer.from(`/${text}`, "utf8").toString("hex");
