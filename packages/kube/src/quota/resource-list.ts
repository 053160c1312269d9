import { addQuantities, formatQuantity, parseQuantity, type Quantity } from "../quantity.ts";

/** Amounts by resource name, read. */
export type Amounts = ReadonlyMap<string, Quantity>;

/** `core/v1 ResourceList` → amounts. Throws an Error for an invalid quantity. */
export function amountsOf(
  list: Record<string, string | number> | undefined,
): Map<string, Quantity> {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text)]));
}

/** Back to a `ResourceList`, names in order. */
export function resourceListOf(amounts: Amounts): Record<string, string> {
  return Object.fromEntries(
    [...amounts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, quantity]) => [name, formatQuantity(quantity)]),
  );
}

/** `a` and `b` together; a name that only one of them has counts too. */
export function sumOf(a: Amounts, b: Amounts): Map<string, Quantity> {
  const sum = new Map(a);
  for (const [name, quantity] of b) {
    const before = sum.get(name);
    sum.set(name, before ? addQuantities(before, quantity) : quantity);
  }
  return sum;
}

/** What `a` has more than `b`; never below zero. */
export function excessOf(a: Amounts, b: Amounts): Map<string, Quantity> {
  return new Map(
    [...a].map(([name, quantity]) => {
      const nano = quantity.nano - (b.get(name)?.nano ?? 0n);
      return [name, { ...quantity, nano: nano > 0n ? nano : 0n }];
    }),
  );
}

/** The larger amount of each name. */
export function largestOf(a: Amounts, b: Amounts): Map<string, Quantity> {
  const largest = new Map(a);
  for (const [name, quantity] of b) {
    const before = largest.get(name);
    if (!before || quantity.nano > before.nano) largest.set(name, quantity);
  }
  return largest;
}

/** Only these names. */
export function masked(amounts: Amounts, names: Iterable<string>): Map<string, Quantity> {
  const wanted = new Set(names);
  return new Map([...amounts].filter(([name]) => wanted.has(name)));
}
