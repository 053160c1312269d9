import { readFileSync } from "node:fs";
import { fullNameOf, type Schema } from "./schema.ts";

/** A field of a Go struct of the published API modules. */
export interface GoField {
  name: string;
  /** As Go's decoder names it: `v1.PodSpec`, `[]string`, `int32`. */
  type: string;
  /** Whether absent and zero differ. */
  pointer: boolean;
  /** Whether it is written even when nothing is set. */
  kept: boolean;
}

interface StructureFile {
  release: string;
  /** Name in OpenAPI → fields as `<JSON name> <!><*><type>`, separated by semicolons. */
  structures: Record<string, string>;
}

const file = JSON.parse(
  readFileSync(new URL("../generated/go-structures.json", import.meta.url), "utf8"),
) as StructureFile;
const structures = new Map<string, Map<string, GoField>>();

/** The release whose types `tools/generate-kube-protobuf` has read. */
export const structuresRelease = file.release;

/** The Go struct behind a schema, fields in its order; undefined for anything that is not a struct of the modules. */
export function structureOf(schema: Schema): Map<string, GoField> | undefined {
  const name = fullNameOf(schema);
  if (name === undefined) return undefined;
  let structure = structures.get(name);
  if (!structure) {
    const text = file.structures[name];
    if (text === undefined) return undefined;
    structure = new Map(text.split(";").map((each) => fieldOf(each)));
    structures.set(name, structure);
  }
  return structure;
}

function fieldOf(text: string): [string, GoField] {
  const [, name = "", kept, pointer, type = ""] = /^(\S*) (!?)(\*?)(.*)$/.exec(text) ?? [];
  return [name, { name, type, kept: kept !== "", pointer: pointer !== "" }];
}
