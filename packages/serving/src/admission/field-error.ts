/** One finding, in Knative's words (`knative.dev/pkg/apis.FieldError`): clients and its conformance tests read them. */
interface Finding {
  message: string;
  paths: readonly string[];
  details: string;
}

/** Findings about the fields of an object. `via` says where the object is in a larger one. */
export class FieldErrors {
  readonly #findings: Finding[] = [];

  get isEmpty(): boolean {
    return this.#findings.length === 0;
  }

  add(message: string, paths: readonly string[] | string, details = ""): this {
    this.#findings.push({ message, paths: typeof paths === "string" ? [paths] : paths, details });
    return this;
  }

  /** Takes the findings about a part over, whose place is named: `spec`, `[0]`, `containers[0]`. */
  via(place: string, part: FieldErrors): this {
    for (const { message, paths, details } of part.#findings) {
      this.#findings.push({ message, details, paths: paths.map((path) => join(place, path)) });
    }
    return this;
  }

  missing(...paths: string[]): this {
    return this.add("missing field(s)", paths);
  }

  disallowed(...paths: string[]): this {
    return paths.length > 0 ? this.add("must not set the field(s)", paths) : this;
  }

  missingOneOf(...paths: string[]): this {
    return this.add("expected exactly one, got neither", paths);
  }

  multipleOneOf(...paths: string[]): this {
    return this.add("expected exactly one, got both", paths);
  }

  invalid(value: unknown, path: string, details = ""): this {
    return this.add(`invalid value: ${String(value)}`, path, details);
  }

  outOfBounds(value: unknown, least: unknown, most: unknown, path: string): this {
    return this.add(`expected ${String(least)} <= ${String(value)} <= ${String(most)}`, path);
  }

  invalidKey(key: string, path: string, details: string): this {
    return this.add(`invalid key name ${JSON.stringify(key)}`, path, details);
  }

  /** Equal findings about several fields are one line; the lines are sorted. */
  toString(): string {
    const merged = new Map<string, { finding: Finding; paths: Set<string> }>();
    for (const finding of this.#findings) {
      const key = `${finding.message}-${finding.details}`;
      const entry = merged.get(key) ?? { finding, paths: new Set() };
      for (const path of finding.paths) entry.paths.add(path);
      merged.set(key, entry);
    }
    const sorted = [...merged.values()].toSorted((a, b) => {
      const [x, y] = [a.finding, b.finding];
      return compare(x.message, y.message) || compare(x.details, y.details);
    });
    return sorted
      .map(({ finding, paths }) => {
        const line = `${finding.message}: ${[...paths].toSorted().join(", ")}`;
        return finding.details ? `${line}\n${finding.details}` : line;
      })
      .join("\n");
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function join(place: string, path: string): string {
  if (path === "" || path.startsWith("[")) return place + path;
  return place === "" ? path : `${place}.${path}`;
}

/** Fields that are set and not in the list are refused, by their names in JSON. */
export function onlyFields(value: object | undefined, allowed: readonly string[]): FieldErrors {
  const set = Object.entries(value ?? {}).filter(([, content]) => isSet(content));
  const wrong = set.map(([name]) => name).filter((name) => !allowed.includes(name));
  return new FieldErrors().disallowed(...wrong);
}

/** What Go leaves out when it writes JSON is not set. */
export function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === 0) return false;
  return value !== false && !(Array.isArray(value) && value.length === 0);
}
