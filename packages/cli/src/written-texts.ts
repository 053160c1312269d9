/** Numbers in YAML that a user means as text: `1.10`, `00123` and `1234e56` are versions, codes and commits in a variable. */
import { defineScalarTag, FAILSAFE_SCHEMA, loadAll, mergeTag, nullCoreTag } from "js-yaml";

const kinds = ["int", "float", "bool", "timestamp", "binary"];
/** Every number and boolean as the text that is written. */
export const textSchema = FAILSAFE_SCHEMA.withTags(
  nullCoreTag,
  mergeTag,
  ...kinds.map((kind) =>
    defineScalarTag<string>(`tag:yaml.org,2002:${kind}`, {
      resolve: (source) => source,
      identify: () => false,
    }),
  ),
);

/** Keys, or `*` for each key of an object and each element of a list. */
type Place = readonly string[];

/** The documents that were read from `text`, with each number and boolean at `places` as it is written there. */
export function withWrittenTexts<T>(
  documents: readonly T[],
  text: string,
  places: readonly Place[],
): T[] {
  const written = loadAll(text, { schema: textSchema });
  return documents.map((document, index) =>
    places.reduce((value, place) => withTextsAt(value, written[index], place), document),
  );
}

function withTextsAt<T>(value: T, written: unknown, [key, ...rest]: Place): T {
  if (key === undefined) {
    const isMeant = typeof value !== "object" && typeof value !== "string";
    return isMeant && typeof written === "string" ? (written as T) : value;
  }
  if (typeof value !== "object" || value === null || typeof written !== "object") return value;
  const texts = written as Record<string, unknown>;
  const keys = key === "*" ? Object.keys(value) : Object.hasOwn(value, key) ? [key] : [];
  const changed = keys.map((each) => [
    each,
    withTextsAt((value as Record<string, unknown>)[each], texts?.[each], rest),
  ]);
  if (Array.isArray(value)) return changed.map(([, each]) => each) as T;
  return { ...value, ...Object.fromEntries(changed) } as T;
}
