import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { elementTexts, JsonText, memberText, stringifyJson } from "@spry/kube";
import { printableJson, printableJsonText } from "../printable-json.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { connectAdmin } from "../events/admin-client.ts";
import { refuseMissingNamespace } from "../missing-namespace.ts";
import { startCommand } from "../shown-command.ts";
import { printable } from "../printable.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

export interface PublishOptions extends GlobalOptions {
  type: string;
  source: string;
  data?: string;
  id?: string;
  attribute?: string[];
  url?: string;
}

/** Publishes one event and prints its id once it is durable. */
export async function publish(options: PublishOptions): Promise<void> {
  const { type, source, data, id = randomUUID(), attribute = [] } = options;
  const url = options.url ?? (await connect(options)).publisher?.href;
  const attributes = Object.fromEntries(
    attribute.map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw new UserError(`${text} is not an attribute`, "write it as in --attribute subject=A-1");
    }),
  );
  const event = {
    specversion: "1.0",
    id,
    source,
    type,
    time: new Date().toISOString(),
    ...attributes,
    ...dataOf(data),
  };
  if (url === undefined) await (await connectAdmin(options)).ask("POST", "/v1/events", event);
  else await post(url, event);
  console.log(id);
}

async function post(url: string, event: object): Promise<void> {
  const response = await fetch(new URL("/publish", url), {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: stringifyJson(event),
  }).catch((error: unknown) => {
    throw new UserError(
      `the publisher at ${url} cannot be reached`,
      `is the platform running? \`${startCommand()}\` starts it`,
      { cause: error },
    );
  });
  const text = await response.text();
  if (!response.ok)
    throw new UserError(
      `the event was refused (HTTP ${response.status}): ${printable(text.trim())}`,
    );
}

/** JSON is sent as it is written, other text as text, and everything else as bytes. */
function dataOf(given: string | undefined): object {
  if (given === undefined) return {};
  const bytes = given.startsWith("@")
    ? readFileSync(given === "@-" ? 0 : given.slice(1))
    : Buffer.from(given);
  if (!isUtf8(bytes))
    return { datacontenttype: "application/octet-stream", data_base64: bytes.toString("base64") };
  const text = bytes.toString("utf8");
  // A byte order mark is not part of a JSON text.
  const json = text.replace(/^\uFEFF/, "").trim();
  try {
    JSON.parse(json);
    return { datacontenttype: "application/json", data: new JsonText(json) };
  } catch {
    return { datacontenttype: "text/plain", data: text };
  }
}

interface State {
  name: string;
  waiting: number;
  inFlight: number;
  retrying: number;
  dead: number;
  oldestAt?: string;
}

export async function list(options: GlobalOptions & { output?: string }): Promise<void> {
  const { ask, client, namespace } = await connectAdmin(options);
  const { items } = await ask<{ items: State[] }>(
    "GET",
    `/v1/namespaces/${namespace}/subscriptions`,
  );
  if (options.output === "json") return console.log(printableJson(items, 2));
  if (items.length === 0) await refuseMissingNamespace(client, namespace);
  if (items.length === 0) return console.log(`no Subscriptions in namespace ${namespace}`);
  const rows = items.map(({ name, waiting, inFlight, retrying, dead, oldestAt = "-" }) => [
    name,
    ...[waiting, inFlight, retrying, dead].map(String),
    oldestAt,
  ]);
  const head = ["SUBSCRIPTION", "WAITING", "IN FLIGHT", "RETRYING", "DEAD", "OLDEST"];
  for (const line of tableLines(head, rows)) console.log(line);
}

export interface TailOptions extends GlobalOptions {
  after?: number;
  type?: string;
  source?: string;
  once?: boolean;
}

const waitSeconds = 20;

/** Until the process is ended. */
export async function tail({ after, type, source, once, ...options }: TailOptions): Promise<void> {
  const { askText } = await connectAdmin(options);
  let position = once ? (after ?? 0) : after;
  for (;;) {
    const query = new URLSearchParams({ limit: "500" });
    if (position !== undefined) query.set("after", String(position));
    if (!once) query.set("wait", String(waitSeconds));
    const page = await askText("GET", `/v1/events?${query}`);
    for (const item of elementTexts(page, "items")) {
      const { event } = JSON.parse(item) as { event: Record<string, unknown> };
      const isWanted =
        (type === undefined || event["type"] === type) &&
        (source === undefined || event["source"] === source);
      if (isWanted) console.log(printableJsonText(item));
    }
    const reached = Number(memberText(page, "position"));
    if (once && reached === (position ?? 0)) return;
    position = reached;
  }
}

export async function replay(
  name: string,
  { from, position, ...options }: GlobalOptions & { from?: string; position?: number },
): Promise<void> {
  const { ask, namespace } = await connectAdmin(options);
  const body = position === undefined ? { time: timeOf(from) } : { position };
  await ask("POST", `/v1/namespaces/${namespace}/subscriptions/${name}/replay`, body);
  console.log(`events are delivered to Subscription ${name} again`);
}

function timeOf(text = ""): string {
  const [, amount, unit = "s"] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (amount !== undefined) {
    const seconds = { s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1;
    return new Date(Date.now() - Number(amount) * seconds * 1_000).toISOString();
  }
  const at = Date.parse(text);
  if (!Number.isNaN(at)) return new Date(at).toISOString();
  throw new UserError(
    "from where on events are delivered again is not known",
    "write --from 30m, --from 2026-01-31T12:00:00Z, or --position 1000",
  );
}
