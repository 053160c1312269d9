/** The files in which AWS Lambda's functions are declared, with each number as it is written and CloudFormation's tags as they are. */
import { defineMappingTag, defineScalarTag, defineSequenceTag, loadAll } from "js-yaml";
import { textSchema } from "../written-texts.ts";

/** What only AWS knows when it is deployed, such as `!Ref Table`. */
export class Intrinsic {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const anyTag = { matchByTagPrefix: true };
const schema = textSchema.withTags(
  defineScalarTag<Intrinsic>("!", {
    ...anyTag,
    resolve: (source: string, _isExplicit: boolean, tag: string) =>
      new Intrinsic(`${tag} ${source}`),
    identify: () => false,
  }),
  defineSequenceTag<unknown[], Intrinsic>("!", {
    ...anyTag,
    create: (tag) => [tag],
    addItem: (items, item) => void items.push(item),
    finalize: ([tag]) => new Intrinsic(String(tag)),
    identify: () => false,
  }),
  defineMappingTag<unknown[], Intrinsic>("!", {
    ...anyTag,
    create: (tag) => [tag],
    addPair: () => "",
    has: () => false,
    keys: () => [],
    get: () => undefined,
    finalize: ([tag]) => new Intrinsic(String(tag)),
    identify: () => false,
  }),
);

/** The first document of it. */
export function loadAwsYaml(text: string): unknown {
  return loadAll(text, { schema })[0];
}

export type Document = Record<string, unknown>;

export function isRecord(value: unknown): value is Document {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Intrinsic)
  );
}

/** An object's member that is an object; empty otherwise. */
export function recordIn(holder: unknown, name: string): Document {
  const found = isRecord(holder) ? holder[name] : undefined;
  return isRecord(found) ? found : {};
}

export function textIn(holder: unknown, name: string): string | undefined {
  const found = isRecord(holder) ? holder[name] : undefined;
  return typeof found === "string" ? found : undefined;
}
