import { printableJson } from "../printable-json.ts";
import { type GlobalOptions } from "../connection.ts";
import { connectAdmin } from "../events/admin-client.ts";
import { refuseMissingNamespace } from "../missing-namespace.ts";
import { printable } from "../printable.ts";
import { tableLines } from "../table.ts";
import { inNamespace } from "../shown-namespace.ts";
import { UserError } from "../user-error.ts";

interface Call {
  id: string;
  function: string;
  state: string;
  acceptedAt: string;
  attempts: number;
  response?: { status: number };
  error?: string;
  schedule?: { name: string };
}

/** The gateway's name of a call, with or without the namespace as prefix. */
function idIn(text: string): string {
  const [, id] = /^(?:[-a-z0-9]+\.)?([0-9a-z]{9,12}-[0-9a-f]{32})$/.exec(text) ?? [];
  if (id !== undefined) return id;
  throw new UserError(
    `${printable(text)} is not the id of a call`,
    "`spry async list` prints them",
  );
}

export async function list(options: GlobalOptions & { output?: string }): Promise<void> {
  const { ask, client, namespace } = await connectAdmin(options);
  const calls: Call[] = [];
  let after: string | undefined = "";
  while (after !== undefined) {
    const page: { items: Call[]; next?: string } = await ask(
      "GET",
      `/v1/namespaces/${namespace}/calls?limit=500&after=${after}`,
    );
    calls.push(...page.items);
    after = page.next;
  }
  if (options.output === "json") return console.log(printableJson(calls, 2));
  if (calls.length === 0) await refuseMissingNamespace(client, namespace);
  if (calls.length === 0) return console.log(`no calls in namespace ${namespace}`);
  const rows = calls.map((call) => [
    call.id,
    call.function,
    call.state,
    call.acceptedAt,
    String(call.attempts),
    call.response ? `HTTP ${call.response.status}` : printable(call.error ?? "-").slice(0, 80),
    call.schedule?.name ?? "-",
  ]);
  const head = ["ID", "FUNCTION", "STATE", "ACCEPTED", "ATTEMPTS", "RESULT", "SCHEDULE"];
  for (const line of tableLines(head, rows)) console.log(line);
}

export async function get(id: string, options: GlobalOptions): Promise<void> {
  const { ask, namespace } = await connectAdmin(options);
  const call = await ask<Call>("GET", `/v1/namespaces/${namespace}/calls/${idIn(id)}`);
  console.log(printableJson(call, 2));
}

export async function cancel(id: string, options: GlobalOptions): Promise<void> {
  const { ask, namespace } = await connectAdmin(options);
  await ask("POST", `/v1/namespaces/${namespace}/calls/${idIn(id)}/cancel`);
  console.log(`call ${idIn(id)} cancelled`);
}

export async function runSchedule(
  name: string,
  schedule: string,
  options: GlobalOptions,
): Promise<void> {
  const { ask, namespace } = await connectAdmin(options);
  const path = `/v1/namespaces/${namespace}/functions/${name}/schedules/${schedule}/run`;
  try {
    const { call } = await ask<{ call: string }>("POST", path);
    console.log(call);
  } catch (error) {
    if (!(error instanceof UserError) || !error.message.includes("has no schedule")) throw error;
    throw new UserError(
      error.message,
      `spry get ${name}${inNamespace(namespace)} -o jsonpath='{.spec.schedules[*].name}' lists them`,
    );
  }
}
