/** What parts of the platform have to say to operators: a sentence each, shown in the Serverless object's status. */
export class Remarks {
  readonly #sentences = new Map<string, string>();
  readonly #listeners = new Set<() => void>();

  list(): readonly string[] {
    return [...this.#sentences.values()];
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** One sentence of each part; undefined takes it back. */
  set(part: string, sentence: string | undefined): void {
    if (this.#sentences.get(part) === sentence) return;
    if (sentence === undefined) this.#sentences.delete(part);
    else this.#sentences.set(part, sentence);
    for (const listener of this.#listeners) listener();
  }
}
