import { type StoredConsumer } from "./consumers.ts";
import { hashOf } from "./messages.ts";

/** Which consumers a new message may concern; by hashes, so perhaps some that it does not. */
export class SubjectIndex {
  readonly #consumersOf = new Map<number, number[]>();
  #consumersOfAll: number[] = [];

  /** Of the ids of these consumers alone. */
  rebuild(consumers: Iterable<StoredConsumer>): void {
    this.#consumersOf.clear();
    this.#consumersOfAll = [];
    for (const { id, subjects, hashes } of consumers) {
      if (subjects === "all") this.#consumersOfAll.push(id);
      for (const each of hashes) {
        const ids = this.#consumersOf.get(each);
        if (ids) ids.push(id);
        else this.#consumersOf.set(each, [id]);
      }
    }
  }

  forEach(subject: string, visit: (id: number) => void): void {
    for (const id of this.#consumersOf.get(hashOf(subject)) ?? []) visit(id);
    for (const id of this.#consumersOfAll) visit(id);
  }
}
