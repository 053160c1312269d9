import { readFileSync } from "node:fs";
import { type WellKnownType, wellKnownTypes } from "./well-known-types.ts";

/**
 * The messages of the built-in kinds as `tools/generate-kube-protobuf` wrote them. Nothing is read
 * before the first request in protobuf, and no message is taken apart before it is needed.
 */
interface MessageFile {
  /** `<apiVersion> <kind>` → message; apiVersion `*` for what every group has. */
  kinds: Record<string, string>;
  /** Message → its fields, `<number> <JSON name> <label><type>`, separated by semicolons. */
  messages: Record<string, string>;
}

export type ScalarType = "string" | "bytes" | "int32" | "int64" | "bool" | "double";

/** `always`: Go has no pointer there, writes a zero for nothing, and reads a zero as nothing. */
export type Label = "always" | "pointer" | "list" | "map";

export interface Field {
  number: number;
  /** Key in JSON; undefined when the message's fields stand among those of its owner. */
  name: string | undefined;
  label: Label;
  type: ScalarType | "message";
  /** Name of the message, when the type is one. */
  message: string;
  /** Set when the JSON of the message is not an object of its fields. */
  wellKnown: WellKnownType | undefined;
  /** Whether the JSON has a zero as well. */
  tellsZero: boolean;
}

export interface Message {
  name: string;
  /** By descending number: Go writes them by ascending ones, and the last is written first here. */
  fields: Field[];
  byNumber: Map<number, Field>;
}

const scalarTypes = ["string", "bytes", "int32", "int64", "bool", "double"];
const labels: Record<string, Label> = { "*": "pointer", "[]": "list", "{}": "map" };
const messages = new Map<string, Message>();
let file: MessageFile | undefined;

function load(): MessageFile {
  const url = new URL("../generated/protobuf-messages.json", import.meta.url);
  return (file ??= JSON.parse(readFileSync(url, "utf8")) as MessageFile);
}

/** The message of a kind; undefined when the kind has no protobuf form here. */
export function messageOfKind(apiVersion: string, kind: string): Message | undefined {
  const { kinds } = load();
  const key = [`${apiVersion} ${kind}`, `* ${kind}`].find((each) => Object.hasOwn(kinds, each));
  return key === undefined ? undefined : messageNamed(kinds[key] ?? "");
}

export function messageNamed(name: string): Message {
  let message = messages.get(name);
  if (!message) {
    const text = wellKnownTypes.get(name)?.fields ?? load().messages[name];
    if (text === undefined) throw new Error(`no protobuf message ${name} was generated`);
    const fields = text === "" ? [] : text.split(";").map(parseField).reverse();
    message = { name, fields, byNumber: new Map(fields.map((field) => [field.number, field])) };
    messages.set(name, message);
  }
  return message;
}

function parseField(text: string): Field {
  const [number = "", name = "", described = ""] = text.split(" ");
  const [, mark = "", type = ""] = /^(\*|\[\]|\{\}|!)?(.+)$/.exec(described) ?? [];
  const isScalar = scalarTypes.includes(type);
  return {
    number: Number(number),
    name: name === "." ? undefined : name,
    label: labels[mark] ?? "always",
    type: isScalar ? (type as ScalarType) : "message",
    message: isScalar ? "" : type,
    wellKnown: wellKnownTypes.get(type),
    tellsZero: mark === "!",
  };
}
