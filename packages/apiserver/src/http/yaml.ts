/** YAML as kube-apiserver reads and writes it: that of Go's `yaml.v2`, which is YAML 1.1 with `0o17` from 1.2. */
import {
  boolYaml11Tag,
  defineScalarTag,
  DUMP_SCHEMA,
  dump,
  FAILSAFE_SCHEMA,
  intYaml11Tag,
  load,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
} from "js-yaml";
import { integerOf } from "../json.ts";

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

const readSchema = FAILSAFE_SCHEMA.withTags(nullYaml11Tag, boolTag, intTag, floatTag, mergeTag);
const writeSchema = DUMP_SCHEMA.withTags({ ...intTag, resolve: knownInteger });

/** Throws a `YAMLException`. `.inf` and `.nan` are read as the numbers that they stand for. */
export function loadYaml(text: string): unknown {
  return load(text, { schema: readSchema });
}

export function dumpYaml(value: unknown): string {
  return dump(value, {
    schema: writeSchema,
    sortKeys: true,
    seqNoIndent: true,
    noRefs: true,
    lineWidth: -1,
  });
}

/** Texts that any reader may take for a number are quoted. */
function knownInteger(source: string, isExplicit: boolean, tagName: string) {
  const tag = DUMP_SCHEMA.tags.findLast((each) => each.tagName === intTag.tagName);
  const known =
    tag?.nodeKind === "scalar" ? tag.resolve(source, isExplicit, tagName) : NOT_RESOLVED;
  return known === NOT_RESOLVED ? intTag.resolve(source, isExplicit, tagName) : (known as number);
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
