import { setTimeout as pause } from "node:timers/promises";
import { type Consumer, type DeadLetter, maxPageBytes, type Message } from "@spry/queue";
import { consumerName, consumerPrefix } from "../dispatcher/subscription-worker.ts";
import { fromJson, toJson } from "../events/cloud-event.ts";
import { eventOf, isEvent } from "../events/message.ts";
import { accept } from "../publisher/accept.ts";
import { type AdminRequest, type AdminRoute } from "./admin-handler.ts";
import { callRoutes } from "./call-routes.ts";
import { Problem } from "./problem.ts";
import { inNamespace, label, limitOf, maxLimit, numberOf } from "./requests.ts";

const maxWaitSeconds = 30;
const pollMs = 200;
const subscription = `${inNamespace}/subscriptions/(?<name>${label})`;
const letters = "subscriptions/deadletters";

export const routes: readonly AdminRoute[] = [
  {
    method: "GET",
    path: new RegExp(`${inNamespace}/subscriptions$`),
    verb: "list",
    resource: "subscriptions",
    async handle({ queue, namespace }) {
      const prefix = `${consumerPrefix}${namespace}/`;
      const names = (await queue.consumerNames()).filter((name) => name.startsWith(prefix)).sort();
      const items: unknown[] = [];
      for (const name of names) {
        const consumer = await queue.find(name);
        if (consumer) items.push(await stateOf(consumer, name.slice(prefix.length)));
      }
      return { items };
    },
  },
  {
    method: "GET",
    path: new RegExp(`${subscription}$`),
    verb: "get",
    resource: "subscriptions",
    handle: async (request) => stateOf(await consumerOf(request), request.name),
  },
  {
    method: "POST",
    path: new RegExp(`${subscription}/replay$`),
    verb: "update",
    resource: "subscriptions/replay",
    async handle(request) {
      const { position, time } = request.body;
      const consumer = await consumerOf(request);
      // Events from before the Subscription's creation require the right to read all events.
      const beforeCreation = await request.mayReadAll();
      if (typeof position === "number" && Number.isSafeInteger(position) && position >= 0)
        return consumer.replay({ position, beforeCreation });
      const at = typeof time === "string" ? Date.parse(time) : Number.NaN;
      if (Number.isNaN(at))
        throw new Problem(
          400,
          "specify where to begin: { position } or { time }, a time of RFC 3339",
        );
      return consumer.replay({ time: at, beforeCreation });
    },
  },
  {
    method: "GET",
    path: new RegExp(`${subscription}/deadletters$`),
    verb: "list",
    resource: letters,
    async handle(request) {
      const limit = limitOf(request);
      const after = numberOf(request.query.get("after") ?? "0", "after");
      const consumer = await consumerOf(request);
      const items = await consumer.deadLetters({ after, limit });
      const isFull = isFullPage(
        items.map(({ event }) => event),
        limit,
      );
      const next = isFull ? items.at(-1)?.id : undefined;
      return { items: items.map(shownLetter), ...(next === undefined ? {} : { next }) };
    },
  },
  {
    method: "GET",
    path: new RegExp(`${subscription}/deadletters/(?<id>\\d{1,15})$`),
    verb: "get",
    resource: letters,
    async handle(request) {
      const letter = await (await consumerOf(request)).deadLetter(Number(request.id));
      if (!letter)
        throw new Problem(404, `Subscription ${request.name} has no dead letter ${request.id}`);
      return shownLetter(letter);
    },
  },
  {
    method: "POST",
    path: new RegExp(`${subscription}/deadletters/redrive$`),
    verb: "update",
    resource: letters,
    handle: async (request) => ({
      count: await (await consumerOf(request)).redrive(idsOf(request)),
    }),
  },
  {
    method: "POST",
    path: new RegExp(`${subscription}/deadletters/discard$`),
    verb: "delete",
    resource: letters,
    handle: async (request) => ({
      count: await (await consumerOf(request)).discard(idsOf(request)),
    }),
  },
  {
    method: "GET",
    path: /^\/v1\/events$/,
    verb: "list",
    resource: "events",
    async handle({ queue, query, signal }) {
      const limit = limitOf({ query });
      const given = query.get("after");
      let after = given === null ? await queue.head() : numberOf(given, "after");
      const waitSeconds = Math.min(numberOf(query.get("wait") ?? "0", "wait"), maxWaitSeconds);
      const deadline = performance.now() + waitSeconds * 1_000;
      for (;;) {
        const messages = await queue.read({ after, limit });
        after = messages.at(-1)?.position ?? after;
        const items = messages.filter(isEvent).map(shownEvent);
        const isOver = performance.now() >= deadline || signal.aborted;
        const isFull = isFullPage(messages, limit);
        if (items.length > 0 || (isOver && !isFull)) return { items, position: after };
        if (!isFull) await pause(pollMs, undefined, { signal }).catch(() => {});
      }
    },
  },
  {
    method: "POST",
    path: /^\/v1\/events$/,
    verb: "create",
    resource: "events",
    async handle({ queue, body, text, metrics, traces }) {
      await accept(queue, [fromJson(body, text)], traces);
      metrics.accepted(1);
    },
  },
  {
    method: "GET",
    path: /^\/v1\/queue$/,
    verb: "list",
    resource: "events",
    handle: async ({ queue }) => ({ ...(await queue.state()), head: await queue.head() }),
  },
  ...callRoutes,
];

/** Whether there may be more behind it. */
const isFullPage = (messages: readonly Message[], limit: number): boolean =>
  messages.length >= limit ||
  messages.reduce((sum, { body }) => sum + body.length, 0) >= maxPageBytes;

async function consumerOf({ queue, namespace, name }: AdminRequest): Promise<Consumer> {
  const found = await queue.find(consumerName(`${namespace}/${name}`));
  if (found) return found;
  throw new Problem(
    404,
    `Subscription ${name} of namespace ${namespace} does not exist, or is not ready`,
  );
}

async function stateOf(consumer: Consumer, name: string) {
  const { oldestAt, ...state } = await consumer.state();
  return { name, ...state, ...(oldestAt === undefined ? {} : { oldestAt: isoTime(oldestAt) }) };
}

const isoTime = (ms: number) => new Date(ms).toISOString();

function shownLetter({ event, buriedAt, ...letter }: DeadLetter) {
  return { ...letter, buriedAt: isoTime(buriedAt), event: toJson(eventOf(event)) };
}

const shownEvent = (message: Message) => ({
  position: message.position,
  at: isoTime(message.at),
  event: toJson(eventOf(message)),
});

function idsOf({ body }: AdminRequest): number[] | "all" {
  const { ids, all } = body;
  if (all === true && ids === undefined) return "all";
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= maxLimit;
  if (isList && ids.every((id) => Number.isSafeInteger(id))) return ids as number[];
  throw new Problem(400, `specify which: { ids: [1, 2] }, at most ${maxLimit}, or { all: true }`);
}
