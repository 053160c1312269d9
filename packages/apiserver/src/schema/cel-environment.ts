import { Environment, type ParseResult } from "@marcbachmann/cel-js";
import { format } from "./cel-libraries/format.ts";
import { addLibrary } from "./cel-libraries/library.ts";
import { lists } from "./cel-libraries/lists.ts";
import { network } from "./cel-libraries/network.ts";
import { semver } from "./cel-libraries/semver.ts";
import { sets } from "./cel-libraries/sets.ts";
import { chargeReplacement, strings } from "./cel-libraries/strings.ts";
import { charge, meter } from "./cel-meter.ts";
import { matchesOfGo, parseExpression } from "./cel-parsing.ts";
import { goRegExp } from "./go-regexp.ts";
import { addQuantities, parseQuantity, type Quantity } from "@spry/kube";

/** A quantity as rules see it (`k8s.io/apiserver/pkg/cel/library/quantity.go`). */
class CelQuantity {
  readonly quantity: Quantity;
  constructor(quantity: Quantity) {
    this.quantity = quantity;
  }
}

class CelUrl {
  readonly url: URL;
  constructor(url: URL) {
    this.url = url;
  }
}

/** Structural limits: what users write is far below. */
const limits = {
  maxAstNodes: 10_000,
  maxDepth: 100,
  maxListElements: 1000,
  maxMapEntries: 1000,
  maxCallArguments: 32,
};

let shared: Environment | undefined;

/** Kubernetes' CEL, made when the first rule is seen: `self` and the functions that plain CEL lacks. */
export function celEnvironment(): Environment {
  shared ??= register(
    new Environment({
      unlistedVariablesAreDyn: true,
      homogeneousAggregateLiterals: false,
      enableOptionalTypes: true,
      limits,
    }),
  );
  return shared;
}

export function parseRule(expression: string): ParseResult {
  return parseExpression(celEnvironment(), expression);
}

type List = unknown[];

function register(environment: Environment): Environment {
  environment.registerType("kubernetes.Quantity", CelQuantity);
  environment.registerType("kubernetes.URL", CelUrl);
  for (const library of [{ functions }, network, semver, format, sets, lists, strings])
    addLibrary(environment, library);
  meter(environment);
  return environment;
}

function ordered(a: unknown, b: unknown): boolean {
  return (a as number) <= (b as number);
}

/** Counts as cel-go does: a tenth for each character of the text, times a quarter for each of the pattern. */
function checkCost(text: string, pattern: string): void {
  charge(Math.ceil((text.length + 1) * 0.1) * Math.ceil(pattern.length * 0.25));
}

function doesMatch(text: string, pattern: string): boolean {
  checkCost(text, pattern);
  return goRegExp(pattern).test(text);
}

function matchesOf(text: string, pattern: string, limit: number): string[] {
  checkCost(text, pattern);
  const found: string[] = [];
  for (const match of goRegExp(pattern).matchAll(text)) {
    if (found.length >= limit) break;
    found.push(match[0]);
  }
  return found;
}

function parsedUrl(text: string): URL | undefined {
  // Go's url.ParseRequestURI also takes absolute paths.
  if (text.startsWith("/"))
    return URL.canParse(text, "http://-") ? new URL(text, "http://-") : undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}

function isQuantity(text: string): boolean {
  try {
    parseQuantity(text);
    return true;
  } catch {
    return false;
  }
}

function compared(a: CelQuantity, b: CelQuantity): bigint {
  const difference = a.quantity.nano - b.quantity.nano;
  return difference < 0n ? -1n : difference > 0n ? 1n : 0n;
}

function summed(list: List): unknown {
  if (list.length === 0) return 0n;
  return list.reduce((sum, each) =>
    typeof sum === "bigint" && typeof each === "bigint" ? sum + each : Number(sum) + Number(each),
  );
}

function smallest(list: List, sign: 1 | -1): unknown {
  if (list.length === 0) throw new Error(`${sign > 0 ? "min" : "max"} called on empty list`);
  return list.reduce((best, each) => {
    const less = (each as number) < (best as number);
    const more = (each as number) > (best as number);
    return (sign > 0 ? less : more) ? each : best;
  });
}

const functions: [string, (...args: never[]) => unknown][] = [
  ["isQuantity(string): bool", isQuantity],
  ["quantity(string): kubernetes.Quantity", (text: string) => new CelQuantity(parseQuantity(text))],
  [
    "kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool",
    (a: CelQuantity, b: CelQuantity) => compared(a, b) > 0n,
  ],
  [
    "kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool",
    (a: CelQuantity, b: CelQuantity) => compared(a, b) < 0n,
  ],
  ["kubernetes.Quantity.compareTo(kubernetes.Quantity): int", compared],
  [
    "kubernetes.Quantity.sign(): int",
    (a: CelQuantity) => compared(a, new CelQuantity(parseQuantity(0))),
  ],
  [
    "kubernetes.Quantity.isInteger(): bool",
    (a: CelQuantity) => a.quantity.nano % 1_000_000_000n === 0n,
  ],
  ["kubernetes.Quantity.asInteger(): int", (a: CelQuantity) => a.quantity.nano / 1_000_000_000n],
  [
    "kubernetes.Quantity.asApproximateFloat(): double",
    (a: CelQuantity) => Number(a.quantity.nano) / 1e9,
  ],
  [
    "kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity",
    (a: CelQuantity, b: CelQuantity) => new CelQuantity(addQuantities(a.quantity, b.quantity)),
  ],
  [
    "kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity",
    (a: CelQuantity, b: CelQuantity) =>
      new CelQuantity(addQuantities(a.quantity, { ...b.quantity, nano: -b.quantity.nano })),
  ],
  [
    "kubernetes.Quantity.add(int): kubernetes.Quantity",
    (a: CelQuantity, b: bigint) =>
      new CelQuantity(addQuantities(a.quantity, parseQuantity(String(b)))),
  ],
  [
    "kubernetes.Quantity.sub(int): kubernetes.Quantity",
    (a: CelQuantity, b: bigint) =>
      new CelQuantity(addQuantities(a.quantity, parseQuantity(String(-b)))),
  ],
  ["isURL(string): bool", (text: string) => parsedUrl(text) !== undefined],
  [
    "url(string): kubernetes.URL",
    (text: string) => {
      const url = parsedUrl(text);
      if (!url) throw new Error(`URL parse error during conversion from string: ${text}`);
      return new CelUrl(url);
    },
  ],
  [
    "kubernetes.URL.getScheme(): string",
    ({ url }: CelUrl) => (url.hostname === "-" ? "" : url.protocol.slice(0, -1)),
  ],
  ["kubernetes.URL.getHost(): string", ({ url }: CelUrl) => (url.hostname === "-" ? "" : url.host)],
  [
    "kubernetes.URL.getHostname(): string",
    ({ url }: CelUrl) => (url.hostname === "-" ? "" : url.hostname),
  ],
  ["kubernetes.URL.getPort(): string", ({ url }: CelUrl) => url.port],
  ["kubernetes.URL.getEscapedPath(): string", ({ url }: CelUrl) => url.pathname],
  [
    "kubernetes.URL.getQuery(): map",
    ({ url }: CelUrl) =>
      new Map([...url.searchParams.keys()].map((key) => [key, url.searchParams.getAll(key)])),
  ],
  [
    "string.find(string): string",
    (text: string, pattern: string) => matchesOf(text, pattern, 1)[0] ?? "",
  ],
  [
    "string.findAll(string): list<string>",
    (text: string, pattern: string) => matchesOf(text, pattern, 1000),
  ],
  [
    "string.findAll(string, int): list<string>",
    (text: string, pattern: string, limit: bigint) =>
      matchesOf(text, pattern, limit < 0n ? 1000 : Number(limit)),
  ],
  ["matches(string, string): bool", doesMatch],
  [`string.${matchesOfGo}(string): bool`, doesMatch],
  [
    "string.charAt(int): string",
    (text: string, index: bigint) => Array.from(text)[Number(index)] ?? "",
  ],
  [
    "string.lowerAscii(): string",
    (text: string) => text.replace(/[A-Z]/g, (char) => char.toLowerCase()),
  ],
  [
    "string.upperAscii(): string",
    (text: string) => text.replace(/[a-z]/g, (char) => char.toUpperCase()),
  ],
  [
    "string.replace(string, string): string",
    (text: string, from: string, to: string) => {
      chargeReplacement(text, from, to);
      return text.replaceAll(from, to);
    },
  ],
  ["string.trim(): string", (text: string) => text.trim()],
  [
    "list.isSorted(): bool",
    (list: List) => list.every((each, i) => i === 0 || ordered(list[i - 1], each)),
  ],
  ["list.sum(): dyn", summed],
  ["list.min(): dyn", (list: List) => smallest(list, 1)],
  ["list.max(): dyn", (list: List) => smallest(list, -1)],
  ["list.indexOf(dyn): int", (list: List, item: unknown) => BigInt(list.indexOf(item))],
  ["list.lastIndexOf(dyn): int", (list: List, item: unknown) => BigInt(list.lastIndexOf(item))],
];
