import { setTimeout as sleep } from "node:timers/promises";
import { load } from "js-yaml";
import { type Transport, transportOrigin } from "@spry/kube";
import { type Answer, Normaliser } from "./answer.ts";
import { type Case, type Step } from "./step.ts";

const watchMs = 4000;
const settleMs = 15_000;

export interface Play {
  namespace: string;
  /** How many times the time that steps want a server to settle. */
  patience: number;
  /** Between a write and what follows it. */
  pauseMs: number;
}

/** The answers of one server to the steps of a case. */
export async function replay(transport: Transport, one: Case, play: Play): Promise<Answer[]> {
  const { namespace, patience, pauseMs } = play;
  const raw: unknown[] = [];
  const answers: Answer[] = [];
  const normaliser = new Normaliser(JSON.stringify(one.steps));
  if (JSON.stringify(one.steps).includes("$ns")) await prepare(transport, namespace);
  for (const step of one.steps) {
    const answer = await settled(transport, filled(step, namespace, raw), patience);
    if (step.method !== "GET") await sleep(pauseMs);
    raw.push(answer.body);
    answers.push(normaliser.answer(answer));
  }
  return answers;
}

/** There are no controllers on either side: what they make in every namespace is made here. */
async function prepare(transport: Transport, namespace: string): Promise<void> {
  const metadata = { name: namespace };
  await send(transport, { method: "POST", path: "/api/v1/namespaces", body: { metadata } });
  const account = { metadata: { name: "default" } };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await send(transport, { method: "POST", path, body: account });
}

async function settled(transport: Transport, step: Step, patience: number): Promise<Answer> {
  if (step.settleMs !== undefined) await sleep(step.settleMs * patience);
  const end = Date.now() + settleMs;
  let answer = await send(transport, step);
  while (!isAwaited(step, answer) && Date.now() < end) {
    await sleep(50);
    answer = await send(transport, step);
  }
  return answer;
}

function isAwaited({ until, untilText = "" }: Step, { status, body }: Answer): boolean {
  return (
    (until === undefined || status === until) && JSON.stringify(body ?? "").includes(untilText)
  );
}

function filled(step: Step, namespace: string, raw: unknown[]): Step {
  const text = JSON.stringify(step)
    .replaceAll("$ns", namespace)
    .replaceAll(/\{\{(\d+)\.([^}]+)\}\}/g, (_, index: string, path: string) => {
      let value: unknown = raw[Number(index)];
      for (const key of path.split("."))
        value = (value as Record<string, unknown> | undefined)?.[key];
      return String(value);
    });
  return JSON.parse(text) as Step;
}

async function send(transport: Transport, step: Step): Promise<Answer> {
  const { method, path, body } = step;
  const headers = new Headers({
    accept: "application/json",
    "user-agent": "differential/1",
    ...step.headers,
  });
  if (body !== undefined && !headers.has("content-type"))
    headers.set("content-type", "application/json");
  const ending = new AbortController();
  const response = await transport(
    new Request(transportOrigin + path, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      signal: ending.signal,
    }),
  );
  const contentType = response.headers.get("content-type") ?? "";
  const told = response.headers.get("warning");
  return {
    status: response.status,
    contentType,
    warnings: told ? told.split(/, (?=299 )/) : [],
    body:
      step.lines === undefined || !response.ok
        ? parsed(await response.text(), contentType)
        : await linesOf(response, step.lines, ending),
  };
}

async function linesOf(
  response: Response,
  count: number,
  ending: AbortController,
): Promise<unknown[]> {
  let text = "";
  const timer = setTimeout(() => ending.abort(), watchMs);
  try {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.split("\n").length > count) break;
    }
  } catch {
    // The time is up: what has come is the answer.
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(0, count)
    .map((line) => parsed(line));
}

function parsed(text: string, contentType = ""): unknown {
  if (contentType === "application/yaml")
    return load(text.replaceAll(/(?<=: |- )-?\d{16,}$/gm, "number $&"));
  try {
    return /\d{16}/.test(text) ? JSON.parse(text, exactly as never) : JSON.parse(text);
  } catch {
    return text;
  }
}

/** A number that this language would round, by its digits: two servers' roundings are not the same answer. */
function exactly(_key: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(source ?? "")
    ? value
    : `number ${source}`;
}
