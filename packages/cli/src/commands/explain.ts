import { functionCrd } from "@spry/function";
import { UserError } from "../user-error.ts";

interface Field {
  type?: string;
  description?: string;
  properties?: Record<string, Field>;
  items?: Field;
  required?: string[];
}

const width = 78;

/** Prints what a field of a Function means (`spec.source`), and which fields it has. */
export function explain(path = ""): void {
  const root = functionCrd().spec.versions[0]?.schema?.openAPIV3Schema as Field;
  const names = path.split(".").filter((name) => name !== "" && name !== "function");
  let field = root;
  for (const [index, name] of names.entries()) {
    const inner: Record<string, Field> = (field.items ?? field).properties ?? {};
    const next = Object.hasOwn(inner, name) ? inner[name] : undefined;
    if (!next)
      throw new UserError(
        `the field ${names.slice(0, index + 1).join(".")} does not exist`,
        `fields here: ${Object.keys(inner).join(", ") || "none"}`,
      );
    field = next;
  }
  const of = field.items ?? field;
  console.log(`${names.join(".") || "Function"}  (${typeOf(field)})\n`);
  if (field.description) console.log(`${wrapped(field.description, "  ")}\n`);
  for (const [name, each] of Object.entries(of.properties ?? {})) {
    const required = of.required?.includes(name) ? ", required" : "";
    console.log(`  ${name}  (${typeOf(each)}${required})`);
    if (each.description) console.log(wrapped(each.description, "    "));
  }
}

const typeOf = ({ type = "object", items }: Field): string =>
  items ? `list of ${items.type === "object" ? "objects" : `${items.type}s`}` : type;

function wrapped(text: string, indent: string): string {
  const pattern = new RegExp(`(.{1,${width - indent.length}})(?:\\s+|$)`, "g");
  return text.replaceAll(pattern, `${indent}$1\n`).trimEnd();
}
