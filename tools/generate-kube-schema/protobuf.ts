import { globSync, readFileSync } from "node:fs";
import path from "node:path";

/**
 * Field numbers of the built-in kinds, out of the struct tags of the Go sources. Per definition:
 * field number → JSON name, with `?` in front when Go has a pointer there (so that a zero was meant),
 * or `>` and the name of a struct whose fields are written inline.
 */
export type FieldNumbers = Record<string, Record<string, string>>;

const fieldPattern =
  /^\s+(?:(\w+)\s+)?(\*?)([\w.[\]*]+)\s+`json:"([^",]*)([^"]*)"[^`]*?protobuf:"\w+,(\d+),/;

/** `roots` are directories of Go modules with the prefix of their definitions' names. */
export function fieldNumbersOf(roots: Record<string, string>, wanted: Set<string>): FieldNumbers {
  const structs: FieldNumbers = {};
  for (const [prefix, directory] of Object.entries(roots)) {
    for (const file of globSync("**/types*.go", { cwd: directory })) {
      const place = [prefix, ...path.dirname(file).split(path.sep)].filter((each) => each !== ".");
      Object.assign(
        structs,
        structsOf(readFileSync(path.join(directory, file), "utf8"), place.join(".")),
      );
    }
  }
  const result: FieldNumbers = {};
  const take = (name: string): void => {
    const fields = structs[name];
    if (!fields || result[name]) return;
    result[name] = fields;
    for (const field of Object.values(fields)) if (field.startsWith(">")) take(field.slice(1));
  };
  for (const name of [...wanted].sort()) take(name);
  return result;
}

function structsOf(source: string, place: string): FieldNumbers {
  const structs: FieldNumbers = {};
  for (const [, name = "", body = ""] of source.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)) {
    const fields: Record<string, string> = {};
    for (const line of body.split("\n")) {
      const match = fieldPattern.exec(line);
      if (!match) continue;
      const [, , pointer = "", type = "", json = "", options = "", number = ""] = match;
      if (options.includes("inline")) fields[number] = `>${place}.${type.split(".").at(-1)}`;
      else fields[number] = (pointer ? "?" : "") + json;
    }
    structs[`${place}.${name}`] = fields;
  }
  return structs;
}
