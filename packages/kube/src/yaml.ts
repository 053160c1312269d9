/**
 * YAML as kubectl and kube-apiserver read and write it: that of Go's `yaml.v2`, which is YAML 1.1 with `0o17` from 1.2. A face of its
 * own for the browser, which loads it when it is needed.
 */
import {
  boolYaml11Tag,
  defineScalarTag,
  DUMP_SCHEMA,
  dump,
  FAILSAFE_SCHEMA,
  floatYaml11Tag,
  intYaml11Tag,
  load,
  loadAll,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
  type ScalarTagDefinition,
} from "js-yaml";
import { integerOf } from "./int64.ts";

const booleans: Record<string, boolean> = { y: true, Y: true, n: false, N: false };
const decimal = /^[-+]?(?:0|[1-9]\d*)$/;
const otherBase = /^([-+]?)0(?:([xX])([\da-fA-F]+)|([bB])([01]+)|[oO]?([0-7]+))$/;
const float = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
const infinite = /^[-+]?\.(?:inf|Inf|INF)$/;

const digits = Array.from("0123456789");
const boolTag = {
  ...boolYaml11Tag,
  resolve: (source: string, isExplicit: boolean, tagName: string) =>
    booleans[source] ?? boolYaml11Tag.resolve(source, isExplicit, tagName),
};
const intTag = defineScalarTag<number | bigint>("tag:yaml.org,2002:int", {
  implicit: true,
  implicitFirstChars: ["-", "+", ...digits],
  resolve: (source) => integer(source.replaceAll("_", "")) ?? NOT_RESOLVED,
  identify: (value) => typeof value === "bigint" || intYaml11Tag.identify(value),
  represent: String,
});
const floatTag = defineScalarTag<number>("tag:yaml.org,2002:float", {
  implicit: true,
  implicitFirstChars: ["-", "+", ".", ...digits],
  resolve: (source) => floating(source) ?? NOT_RESOLVED,
  identify: () => false,
});

/** JSON has neither: the text of the bytes, and of the time. */
const binaryTag = defineScalarTag<string>("tag:yaml.org,2002:binary", {
  resolve: bytesText,
  identify: () => false,
});
const timestampTag = defineScalarTag<string>("tag:yaml.org,2002:timestamp", {
  resolve: (source) => source,
  identify: () => false,
});

const readSchema = FAILSAFE_SCHEMA.withTags(
  nullYaml11Tag,
  boolTag,
  intTag,
  floatTag,
  mergeTag,
  binaryTag,
  timestampTag,
);
const writeSchema = DUMP_SCHEMA.withTags(
  { ...intTag, resolve: knownToAny(intTag) },
  { ...floatYaml11Tag, resolve: knownToAny(floatTag) },
);

/** The value of the first document; throws a `YAMLException`. `.inf` and `.nan` are read as the numbers that they stand for. */
export function loadYaml(text: string): unknown {
  return load(text, { schema: readSchema });
}

/** The same of all documents. */
export function loadAllYaml(text: string): unknown[] {
  return loadAll(text, { schema: readSchema });
}

/** What any reader of YAML takes as this value, keys in the order that they have unless `isSorted`. */
export function dumpYaml(value: unknown, { isSorted = false } = {}): string {
  return dump(value, {
    schema: writeSchema,
    sortKeys: isSorted,
    seqNoIndent: true,
    noRefs: true,
    lineWidth: -1,
  });
}

/** Texts that any reader may take for a number are quoted. */
function knownToAny(ours: ScalarTagDefinition<number | bigint>) {
  return (source: string, isExplicit: boolean, tagName: string) => {
    const tag = DUMP_SCHEMA.tags.findLast((each) => each.tagName === ours.tagName);
    const known =
      tag?.nodeKind === "scalar" ? tag.resolve(source, isExplicit, tagName) : NOT_RESOLVED;
    const found = known === NOT_RESOLVED ? ours.resolve(source, isExplicit, tagName) : known;
    return found as number | typeof NOT_RESOLVED;
  };
}

function integer(text: string): number | bigint | undefined {
  if (decimal.test(text)) return integerOf(text.replace("+", ""));
  const match = otherBase.exec(text);
  if (!match) return undefined;
  const [, sign, , hexadecimal, , binary, octal] = match;
  const value = BigInt(
    hexadecimal ? `0x${hexadecimal}` : binary ? `0b${binary}` : `0o${octal ?? ""}`,
  );
  return integerOf(String(sign === "-" ? -value : value));
}

/** What is too large for a double is a text. */
function floating(source: string): number | undefined {
  if (infinite.test(source)) return source.startsWith("-") ? -Infinity : Infinity;
  if (/^\.(?:nan|NaN|NAN)$/.test(source)) return Number.NaN;
  const plain = source.startsWith(".") ? source : source.replaceAll("_", "");
  if (!float.test(plain)) return undefined;
  const value = Number(plain);
  return Number.isFinite(value) ? value : undefined;
}

function bytesText(source: string): string | typeof NOT_RESOLVED {
  try {
    const bytes = Uint8Array.from(atob(source), (char) => char.charCodeAt(0));
    return new TextDecoder().decode(bytes);
  } catch {
    return NOT_RESOLVED;
  }
}
