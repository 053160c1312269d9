import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";
import { labels } from "@spry/function";
import { isNotFound, resources, type Secret } from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { parseDotEnv } from "../dot-env.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { refuseMissingNamespace } from "../missing-namespace.ts";
import { printableJson } from "../printable-json.ts";
import { tableLines } from "../table.ts";
import { readText } from "../text-file.ts";
import { UserError } from "../user-error.ts";
import { age } from "./get.ts";

const maxBytes = 1024 * 1024;

/** Prints the namespace's Secrets and their keys, without values; those of the platform are left out. */
export async function listSecrets(options: GlobalOptions & { output?: string }): Promise<void> {
  const { client, namespace } = await connect(options);
  const { items } = await client.list(resources.secrets, { namespace });
  const own = items.filter(
    ({ metadata, type = "Opaque" }) => type === "Opaque" && !metadata.labels?.[labels.config],
  );
  if (items.length === 0) await refuseMissingNamespace(client, namespace);
  const keysOf = ({ data }: Secret) => Object.keys(data ?? {}).sort();
  if (options.output === "json") {
    const all = own.map((secret) => ({
      name: secret.metadata.name,
      keys: keysOf(secret),
      createdAt: secret.metadata.creationTimestamp,
    }));
    return console.log(printableJson(all, 2));
  }
  if (own.length === 0)
    return console.error(
      `No Secrets in namespace ${namespace}. \`spry secrets set NAME KEY=VALUE\` creates one.`,
    );
  const rows = own.map((secret) => [
    secret.metadata.name ?? "",
    keysOf(secret).join(", "),
    age(secret.metadata.creationTimestamp),
  ]);
  for (const line of tableLines(["NAME", "KEYS", "AGE"], rows)) console.log(line);
}

/** Sets keys of a Secret (`KEY=VALUE`), removes others (`KEY-`) and leaves the rest; creates it if it does not exist. */
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
  const { values, problems } = parseDotEnv(readText(file));
  const [problem] = problems;
  if (problem)
    throw new UserError(
      `${file}:${problem.line}: ${problem.message}`,
      "nothing was set; write one NAME=VALUE a line",
    );
  if (Object.keys(values).length === 0)
    throw new UserError(`${file} has no variables`, "write one NAME=VALUE a line");
  await write(name, values, options);
}

async function write(
  name: string,
  values: Readonly<Record<string, string | Buffer | undefined>>,
  options: GlobalOptions,
): Promise<void> {
  if (name.length > 253 || !/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name))
    throw new UserError(
      `${name || '""'} is not a valid name of a Secret`,
      "begin with the name, in lower-case letters, digits, hyphens and dots: `spry secrets set my-secret KEY=VALUE`",
    );
  const { client, namespace } = await connect(options);
  const data: Record<string, string> = {};
  const removed: Record<string, null> = {};
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) removed[key] = null;
    else data[key] = Buffer.from(value).toString("base64");
  }
  try {
    await client.patch(resources.secrets, { namespace, name }, { data: { ...data, ...removed } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    if (Object.keys(data).length === 0)
      throw new UserError(
        `Secret ${name} not found in namespace ${namespace}`,
        "`spry secrets list` lists all of them",
      );
    const secret: Secret = { metadata: { name, namespace }, type: "Opaque", data };
    await client.create(resources.secrets, secret, { fieldManager });
  }
  const [first] = Object.keys(data);
  const done = [
    ...(first === undefined ? [] : [`${Object.keys(data).join(", ")} set`]),
    ...(Object.keys(removed).length === 0 ? [] : [`${Object.keys(removed).join(", ")} removed`]),
  ];
  console.error(`secret/${name}: ${done.join("; ")}`);
  if (first !== undefined)
    console.error(`In spry.yaml: env: { NAME: { secret: ${name}, key: ${first} } }`);
}

/** Undefined for a key that is to be removed. */
function valueIn(text: string): [key: string, value: string | Buffer | undefined] {
  if (/^[-._a-zA-Z0-9]+-$/.test(text)) return [text.slice(0, -1), undefined];
  const [, key = "", value] = /^([-._a-zA-Z0-9]+)(?:=([^]*))?$/.exec(text) ?? [];
  if (key === "") throw new UserError(`${text.split("=")[0]} is not a key`, "write KEY=VALUE");
  if (value === undefined) return [key, fromInput(readFileSync(0))];
  return [key, value.startsWith("@") ? read(value.slice(1)) : value];
}

/** Of a text without the line end that `echo` adds; other bytes are kept as they are. */
function fromInput(bytes: Buffer): string | Buffer {
  return isUtf8(bytes) ? bytes.toString("utf8").replace(/\r?\n$/, "") : bytes;
}

function read(file: string): Buffer {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) throw new UserError(`the file ${file} does not exist`);
  if (found.size > maxBytes) throw new UserError(`${file} is larger than 1 MiB`);
  return readFileSync(file);
}
