import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { labels } from "@spry/function";
import { isNotFound, resources, type Secret } from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";
import { age } from "./get.ts";

const maxBytes = 1024 * 1024;

/** Prints the namespace's Secrets and their keys, without values; those of the platform are left out. */
export async function listSecrets(options: GlobalOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const { items } = await client.list(resources.secrets, { namespace });
  const own = items.filter(
    ({ metadata, type = "Opaque" }) => type === "Opaque" && !metadata.labels?.[labels.config],
  );
  if (own.length === 0)
    return console.error(
      `No Secrets in namespace ${namespace}. \`spry secrets set NAME KEY=VALUE\` creates one.`,
    );
  const rows = own.map(({ metadata, data }) => [
    metadata.name ?? "",
    Object.keys(data ?? {})
      .sort()
      .join(", "),
    age(metadata.creationTimestamp),
  ]);
  for (const line of tableLines(["NAME", "KEYS", "AGE"], rows)) console.log(line);
}

/** Sets keys of a Secret and leaves its others; creates it if it does not exist. */
export async function setSecrets(
  name: string,
  keys: readonly string[],
  options: GlobalOptions,
): Promise<void> {
  const values = Object.fromEntries(keys.map(valueIn));
  await write(name, values, options);
}

/** The same with all keys of a `.env` file. */
export async function importSecrets(
  name: string,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  const values = parseEnv(read(file).toString()) as Record<string, string>;
  if (Object.keys(values).length === 0)
    throw new UserError(`${file} has no variables`, "write one NAME=VALUE a line");
  await write(name, values, options);
}

async function write(
  name: string,
  values: Readonly<Record<string, string | Buffer>>,
  options: GlobalOptions,
): Promise<void> {
  const { client, namespace } = await connect(options);
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
  try {
    await client.patch(resources.secrets, { namespace, name }, { data });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const secret: Secret = { metadata: { name, namespace }, type: "Opaque", data };
    await client.create(resources.secrets, secret, { fieldManager });
  }
  console.error(`secret/${name}: ${Object.keys(values).join(", ")} set`);
  console.error(`In spry.yaml: env: { NAME: { secret: ${name}, key: ${Object.keys(values)[0]} } }`);
}

function valueIn(text: string): [key: string, value: string | Buffer] {
  const [, key = "", value] = /^([-._a-zA-Z0-9]+)(?:=([^]*))?$/.exec(text) ?? [];
  if (key === "") throw new UserError(`${text.split("=")[0]} is not a key`, "write KEY=VALUE");
  if (value === undefined) return [key, readFileSync(0, "utf8").replace(/\r?\n$/, "")];
  return [key, value.startsWith("@") ? read(value.slice(1)) : value];
}

function read(file: string): Buffer {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) throw new UserError(`the file ${file} does not exist`);
  if (found.size > maxBytes) throw new UserError(`${file} is larger than 1 MiB`);
  return readFileSync(file);
}
