import { elementTexts, indentJson, memberText } from "@spry/kube";
import { printableJsonText } from "../printable-json.ts";
import { type GlobalOptions } from "../connection.ts";
import { connectAdmin } from "../events/admin-client.ts";
import { explained } from "../events/exceptions.ts";
import { printable } from "../printable.ts";
import { tableLines } from "../table.ts";
import { UserError } from "../user-error.ts";

interface Letter {
  id: number;
  buriedAt: string;
  attempts: number;
  reason: string;
  message: string;
  event: Record<string, unknown>;
}

const pathOf = (namespace: string, name: string) =>
  `/v1/namespaces/${namespace}/subscriptions/${encodeURIComponent(name)}/deadletters`;

export async function list(
  name: string,
  options: GlobalOptions & { output?: string },
): Promise<void> {
  const { askText, client, namespace } = await connectAdmin(options);
  const texts: string[] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const path = `${pathOf(namespace, name)}?limit=500&after=${after}`;
    const page: string = await askText("GET", path);
    texts.push(...elementTexts(page, "items"));
    const next = memberText(page, "next");
    after = next === undefined ? undefined : Number(next);
  }
  if (options.output === "json") return printText(`[${texts.join(",")}]`);
  const letters = texts.map((text) => JSON.parse(text) as Letter);
  if (letters.length === 0) return console.log(`no dead letters of Subscription ${name}`);
  const messages = await explained(client, { namespace, subscription: name }, letters);
  const rows = letters.map(({ id, buriedAt, attempts, reason, event }, index) => [
    String(id),
    buriedAt,
    String(attempts),
    printable(String(event["type"])),
    printable(String(event["id"])),
    printable(`${reason}: ${messages[index]}`).slice(0, 160),
  ]);
  const head = ["ID", "SINCE", "ATTEMPTS", "TYPE", "EVENT", "WHY"];
  for (const line of tableLines(head, rows)) console.log(line);
}

export async function show(name: string, id: string, options: GlobalOptions): Promise<void> {
  if (!/^\d{1,15}$/.test(id)) throw new UserError(`${id} is not the id of a dead letter`);
  const { askText, client, namespace } = await connectAdmin(options);
  const text = await askText("GET", `${pathOf(namespace, name)}/${id}`);
  printText(text);
  // For a reader alone.
  if (!process.stderr.isTTY) return;
  const letter = JSON.parse(text) as Letter;
  const [why = ""] = await explained(client, { namespace, subscription: name }, [letter]);
  if (why !== letter.message) console.error(printable(why));
}

const printText = (json: string) => console.log(printableJsonText(indentJson(json, 2)));

export async function move(
  verb: "redrive" | "discard",
  name: string,
  ids: string[],
  options: GlobalOptions & { all?: boolean },
): Promise<void> {
  if (ids.length > 0 === (options.all === true))
    throw new UserError("say which dead letters", `spry dlq ${verb} ${name} 1 2, or --all`);
  const { ask, namespace } = await connectAdmin(options);
  const body = options.all ? { all: true } : { ids: ids.map(Number) };
  const { count } = await ask<{ count: number }>(
    "POST",
    `${pathOf(namespace, name)}/${verb}`,
    body,
  );
  console.log(`${count} ${verb === "redrive" ? "delivered again" : "discarded"}`);
}
