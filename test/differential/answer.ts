/** What a server said to one step, as far as two servers can be expected to say the same. */
export interface Answer {
  status: number;
  contentType: string;
  warnings: string[];
  /** Parsed when it is JSON; the lines of a watch as a list. */
  body: unknown;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const time = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})/g;
const address = /\b10\.96\.\d+\.\d+\b/g;
const age = /^(?:\d+[smhdy])+$|^<invalid>$/;
const revisionInText =
  /(resource version: )\d+( \(\d+\))?|(current: |version: |in record \(|in the precondition \()\d+/g;

/** An object in an error is quoted as a text of JSON, whose fields may come in any order. */
const shownJson = /(?<=Invalid value: )("\{(?:[^"\\]|\\.)*\}")/g;

function sortedJson(text: string): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).filter(([key]) => key !== "resourceVersion");
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
  };
  try {
    return JSON.stringify(sorted(JSON.parse(JSON.parse(text) as string)));
  } catch {
    return text;
  }
}

function byManager(a: unknown, b: unknown): number {
  const nameOf = (entry: unknown) => {
    const { operation, manager, subresource } = (entry ?? {}) as Record<string, unknown>;
    return JSON.stringify([operation, manager, subresource]);
  };
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

/**
 * Removes what two servers choose for themselves. Resource versions become numbers in the order of their
 * appearance in the case, so that a write which changes nothing can be told from one that does.
 */
export class Normaliser {
  readonly #revisions = new Map<string, number>();
  readonly #generated = new Map<string, string>();
  /** Times that the case itself has sent are to come back as they are. */
  readonly #sent: string;

  constructor(sent: string) {
    this.#sent = sent;
  }

  answer(answer: Answer): Answer {
    this.#collect(answer.body);
    return {
      ...answer,
      body: this.#value(answer.body, "", undefined),
      warnings: answer.warnings.map((each) => this.#text(each)),
    };
  }

  #collect(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    const { generateName, name } = value as { generateName?: unknown; name?: unknown };
    if (typeof generateName === "string" && typeof name === "string" && generateName) {
      if (name.startsWith(generateName)) this.#generated.set(name, `${generateName}<generated>`);
    }
    for (const child of Object.values(value)) this.#collect(child);
  }

  #value(value: unknown, key: string, parent: unknown): unknown {
    if (Array.isArray(value)) {
      // They come in the order of their times, which may be of one second or of two.
      const list = key === "managedFields" ? value.toSorted(byManager) : value;
      return list.map((each) => this.#value(each, key, parent));
    }
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([name, child]) => [name, this.#value(child, name, value)]),
      );
    }
    if (key === "nodePort" && typeof value === "number") return "<port>";
    if (typeof value !== "string") return value;
    if (key === "continue" && value) return "<continue>";
    if (key === "cells" && age.test(value)) return "<age>";
    if (key === "resourceVersion" && value) return this.#revision(value, parent);
    return this.#text(value);
  }

  #revision(value: string, parent: unknown): string {
    const isObject = typeof parent === "object" && parent !== null && "uid" in parent;
    if (!isObject) return "<revision>";
    const number = this.#revisions.get(value) ?? this.#revisions.size + 1;
    this.#revisions.set(value, number);
    return `<revision ${number}>`;
  }

  #text(text: string): string {
    let result = text.replaceAll(shownJson, (_, json: string) => sortedJson(json));
    result = result.replaceAll(uuid, (found) => (this.#sent.includes(found) ? found : "<uid>"));
    result = result.replaceAll(time, (found) => (this.#sent.includes(found) ? found : "<time>"));
    result = result.replaceAll(address, (found) => (this.#sent.includes(found) ? found : "<ip>"));
    result = result.replaceAll(
      revisionInText,
      (_, one = "", _two, three = "") => `${one}${three}<revision>`,
    );
    for (const [name, shown] of this.#generated) result = result.replaceAll(name, shown);
    return result;
  }
}
