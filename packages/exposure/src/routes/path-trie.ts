/**
 * Which of many path templates match a path, without trying each: templates are kept by their segments.
 *
 * - `{*}` stands for one segment that is not empty.
 * - `{**}`, the last operator of a template, stands for what is left of the path, which may be empty; with segments after
 *   it, for at least one character.
 *
 * (The original's table in `significance-of-rule-path-and-method-order.md`.)
 */
export class PathTrie {
  readonly #root = newNode();

  /** The template begins with a slash. */
  add(template: string, value: number): void {
    const segments = segmentsOf(template);
    const glob = segments.indexOf("{**}");
    let node = this.#root;
    for (const segment of glob < 0 ? segments : segments.slice(0, glob)) {
      if (segment === "{*}") node = node.one ??= newNode();
      else {
        let next = node.literal.get(segment);
        if (!next) node.literal.set(segment, (next = newNode()));
        node = next;
      }
    }
    if (glob < 0) node.ends.push(value);
    else {
      const suffix = segments.slice(glob + 1);
      node.globs.push({ suffix: suffix.length > 0 ? `/${suffix.join("/")}` : "", value });
    }
  }

  /** The values of all templates that match, in no order. */
  match(path: string): number[] {
    const found: number[] = [];
    collect(this.#root, path, 1, found);
    return found;
  }
}

interface Node {
  literal: Map<string, Node>;
  /** `{*}` */
  one: Node | undefined;
  ends: number[];
  /** `{**}` */
  globs: { suffix: string; value: number }[];
}

const newNode = (): Node => ({ literal: new Map(), one: undefined, ends: [], globs: [] });

function segmentsOf(path: string): string[] {
  return path.slice(1).split("/");
}

/** `from` is where the next segment begins; behind the path when there is none left. */
function collect(node: Node, path: string, from: number, found: number[]): void {
  if (from > path.length) {
    found.push(...node.ends);
    return;
  }
  for (const { suffix, value } of node.globs) {
    const isLonger = path.length - suffix.length > from;
    if (suffix === "" || (isLonger && path.endsWith(suffix))) found.push(value);
  }
  const slash = path.indexOf("/", from);
  const end = slash < 0 ? path.length : slash;
  const segment = path.slice(from, end);
  const literal = node.literal.get(segment);
  if (literal) collect(literal, path, end + 1, found);
  // A template as a path: what stands for several segments is not one.
  if (node.one && segment !== "" && segment !== "{**}") collect(node.one, path, end + 1, found);
}
