import { type DeadLetter, maxPageBytes, type Message, type Verdict } from "../queue.ts";
import { decode, encode } from "./frame.ts";
import { readLog } from "./log-reader.ts";
import { type Link, type Publishing } from "./publishing.ts";

const maxWhyLength = 4_096;

/** The dead letters of one consumer: a subject of a stream of their own. */
export class DeadLetters {
  readonly #link: Link;
  readonly #publishing: Publishing;
  readonly #consumer: string;
  readonly #subject: string;

  constructor(link: Link, publishing: Publishing, consumer: string) {
    this.#link = link;
    this.#publishing = publishing;
    this.#consumer = consumer;
    this.#subject = link.names.dead(consumer);
  }

  async add(message: Message, attempts: number, { reason, message: why }: Verdict): Promise<void> {
    const { position, at } = message;
    const dead = { reason, message: why.slice(0, maxWhyLength), attempts, position, at };
    const id = `${this.#subject} ${position} ${attempts}`;
    await this.#publishing.write(this.#subject, encode(message, dead), this.#link.names.id(id));
  }

  async count(): Promise<number> {
    const { manager, names } = this.#link;
    const { state } = await manager.streams.info(names.deadStream, {
      subjects_filter: this.#subject,
    });
    return state.subjects?.[this.#subject] ?? 0;
  }

  async page({ after = 0, limit }: { after?: number; limit: number }): Promise<DeadLetter[]> {
    const { manager, names } = this.#link;
    const stored = await readLog(manager, names.deadStream, {
      seq: after + 1,
      subject: this.#subject,
      limit,
      maxBytes: maxPageBytes,
    });
    return stored.flatMap(({ seq, data, timestamp }) => {
      const buriedAt = Date.parse(timestamp);
      const { message, dead } = decode(data, seq, buriedAt) ?? {};
      if (!message || !dead) return [];
      const { reason, message: why, attempts, position, at } = dead;
      return [
        { id: seq, buriedAt, reason, message: why, attempts, event: { ...message, position, at } },
      ];
    });
  }

  async one(id: number): Promise<DeadLetter | undefined> {
    const [found] = await this.page({ after: id - 1, limit: 1 });
    return found?.id === id ? found : undefined;
  }

  async redrive(ids: readonly number[] | "all"): Promise<number> {
    let count = 0;
    for await (const letter of this.#chosen(ids)) {
      const { event, id } = letter;
      const key = `redriven ${this.#subject} ${id}`;
      const subject = this.#link.names.private(this.#consumer);
      const { notBefore: _, ...message } = event;
      await this.#publishing.write(subject, encode(message), this.#link.names.id(key));
      if (await this.#delete(id)) count++;
    }
    return count;
  }

  async discard(ids: readonly number[] | "all"): Promise<number> {
    const { manager, names } = this.#link;
    if (ids === "all") {
      const { purged } = await manager.streams.purge(names.deadStream, { filter: this.#subject });
      return purged;
    }
    let count = 0;
    // Looked up first: it may be another consumer's.
    for await (const { id } of this.#chosen(ids)) if (await this.#delete(id)) count++;
    return count;
  }

  async #delete(id: number): Promise<boolean> {
    const { manager, names } = this.#link;
    return manager.streams.deleteMessage(names.deadStream, id, false).catch(() => false);
  }

  async *#chosen(ids: readonly number[] | "all"): AsyncGenerator<DeadLetter> {
    if (ids !== "all") {
      for (const id of ids) {
        const letter = await this.one(id);
        if (letter) yield letter;
      }
      return;
    }
    let after = 0;
    for (;;) {
      const letters = await this.page({ after, limit: 100 });
      yield* letters;
      const last = letters.at(-1);
      if (!last) return;
      after = last.id;
    }
  }
}
