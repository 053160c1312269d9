/** Every clause of docs/runtime-contract.md, over HTTP, against every runtime that this machine can run. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clause, clauses } from "./clauses.ts";
import { availableRuntimes, missingRuntimes, startRuntime } from "./runtimes.ts";

const contract = readFileSync(
  path.resolve(import.meta.dirname, "../../../docs/runtime-contract.md"),
  "utf8",
);

test("each clause of the contract has a row, or says that it is tested elsewhere", () => {
  const numbered = [...contract.matchAll(/(?<=^|\. )(\d+\.\d+)( †)? (?=[A-Z`])/gm)];
  const here = numbered.filter(([, , mark]) => mark === undefined).map(([, number]) => number);
  expect(new Set(clauses.map(({ clause }) => clause))).toEqual(new Set(here));
});

describe.each(await availableRuntimes())("$name", (runtime) => {
  const rows = clauses.filter(
    ({ handlers, api }) => handlers[runtime.language] && (api ?? runtime.api) === runtime.api,
  );
  test.each(rows)("$clause $name", async (row) => {
    const code = row.handlers[runtime.language] ?? "";
    const running = await startRuntime(runtime, code, row.env ?? {});
    onTestFinished(() => running.stop());
    const answer = await ask(running.url, row.request);
    const { status = 200, body, json, headers = {} } = row.answer;
    expect({ status: answer.statusCode, body: answer.body }).toEqual({
      status,
      body: body instanceof RegExp ? expect.stringMatching(body) : (body ?? answer.body),
    });
    if (json !== undefined) expect(JSON.parse(answer.body)).toEqual(json);
    for (const [name, value] of Object.entries(headers)) expect(answer.headers[name]).toBe(value);
  });
});

test.skipIf(true).each(missingRuntimes)("$name cannot be had here: $reason", () => {});

async function ask(url: string, { path: target = "/", ...call }: Clause["request"] = {}) {
  const outgoing = request(`${url}${target}`, {
    agent: false,
    method: call.method ?? "GET",
    headers: call.headers ?? {},
  });
  outgoing.end(call.body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of answer as AsyncIterable<Buffer>) body += chunk.toString();
  return { statusCode: answer.statusCode, headers: answer.headers, body };
}
