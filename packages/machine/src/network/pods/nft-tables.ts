/** A set or a map of nftables. */
export interface Elements {
  kind: "set" | "map";
  /** Of its keys, and in a map of its values. */
  type: string;
  /** As nftables has them, for intervals. */
  flags?: string;
  /** Key → verdict, which a set does not have. */
  elements: ReadonlyMap<string, string>;
}

/** One table of nftables, as far as it changes, and the frame that refers to it. */
export interface NftTable {
  /** With its family: `ip pods`. */
  name: string;
  /** Chains by name, with their rules. */
  chains: ReadonlyMap<string, readonly string[]>;
  sets: ReadonlyMap<string, Elements>;
  /** Base chains. They may name chains and sets that are always there. */
  frame: string;
}

/** Elements of one command. */
const elementsAtOnce = 500;

/** A text that replaces everything that was there. */
export function wholeText({ name: table, chains, sets, frame }: NftTable): string {
  const lines = [`table ${table}`, `delete table ${table}`, `table ${table} {`];
  for (const [name, set] of sets) lines.push(`  ${set.kind} ${name} { ${definitionOf(set)} }`);
  for (const name of chains.keys()) lines.push(`  chain ${name} { }`);
  lines.push("}");
  for (const [name, rules] of chains) lines.push(...added(table, name, rules));
  for (const [name, { elements }] of sets)
    lines.push(...commands("add", `${table} ${name}`, [...elements]));
  return `${lines.join("\n")}\ntable ${table} {\n${frame}}\n`;
}

/**
 * A text that makes one table of another one, by what is different alone; "" when nothing is. It is one transaction: nftables does all
 * of it, or nothing.
 */
export function changesText(before: NftTable, after: NftTable): string {
  if (before.frame !== after.frame) return wholeText(after);
  const table = after.name;
  const [first, middle, last]: [string[], string[], string[]] = [[], [], []];
  for (const [name, set] of after.sets)
    if (!before.sets.has(name))
      first.push(`add ${set.kind} ${table} ${name} { ${definitionOf(set)} }`);
  for (const name of after.chains.keys())
    if (!before.chains.has(name)) first.push(`add chain ${table} ${name}`);
  for (const [name, set] of after.sets)
    changeElements(`${table} ${name}`, before.sets.get(name), set, middle, last);
  const changed: string[] = [];
  for (const [name, rules] of after.chains) {
    const old = before.chains.get(name);
    if (old && sameRules(old, rules)) continue;
    if (old) changed.push(`flush chain ${table} ${name}`);
    changed.push(...added(table, name, rules));
  }
  const gone = [...before.chains.keys()].filter((name) => !after.chains.has(name));
  const goneSets = [...before.sets.keys()].filter((name) => !after.sets.has(name));
  return [
    ...first,
    ...middle,
    ...changed,
    ...last,
    // They refer to each other.
    ...gone.map((name) => `flush chain ${table} ${name}`),
    ...gone.map((name) => `delete chain ${table} ${name}`),
    ...goneSets.map((name) => `delete ${before.sets.get(name)?.kind ?? "set"} ${table} ${name}`),
  ].join("\n");
}

/** What a map leads to is taken away before its chains change, and added after. */
function changeElements(
  name: string,
  before: Elements | undefined,
  { elements }: Elements,
  removals: string[],
  additions: string[],
): void {
  const old = before?.elements ?? new Map<string, string>();
  if (old === elements) return;
  const gone = [...old].filter(([key, value]) => elements.get(key) !== value);
  const come = [...elements].filter(([key, value]) => old.get(key) !== value);
  const keys = gone.map(([key]): [string, string] => [key, ""]);
  removals.push(...commands("delete", name, keys));
  additions.push(...commands("add", name, come));
}

function sameRules(one: readonly string[], other: readonly string[]): boolean {
  return (
    one === other || (one.length === other.length && one.every((rule, i) => rule === other[i]))
  );
}

function added(table: string, name: string, rules: readonly string[]): string[] {
  return rules.map((rule) => `add rule ${table} ${name} ${rule}`);
}

function commands(verb: string, name: string, elements: [string, string][]): string[] {
  const lines: string[] = [];
  for (let at = 0; at < elements.length; at += elementsAtOnce) {
    const some = elements.slice(at, at + elementsAtOnce);
    const texts = some.map(([key, verdict]) => (verdict ? `${key} : ${verdict}` : key));
    lines.push(`${verb} element ${name} { ${texts.join(", ")} }`);
  }
  return lines;
}

function definitionOf({ type, flags = "" }: Elements): string {
  return `type ${type}; ${flags}`.trim();
}
