/** Subscriptions in the administration of events (docs/contributing/rooms/eventing.md#administration), as the user. */
import { elementTexts, indentJson, memberText } from "@spry/kube/browser";
import { fitted } from "./shape.ts";
import { adminAnswer, adminJson as json } from "../api/admin.ts";

/** How far the delivery of a Subscription's events is. */
export interface QueueState {
  name: string;
  waiting: number;
  inFlight: number;
  retrying: number;
  dead: number;
  /** The time of the oldest event that waits. */
  oldestAt?: string;
}

export interface DeadLetter {
  id: number;
  buriedAt: string;
  attempts: number;
  reason: string;
  message: string;
  /** The CloudEvent, in the JSON format. */
  event: Record<string, unknown>;
  /** The same as it was published, in indented lines. */
  eventText: string;
}

const statesShape = {
  "items!": [
    {
      "name!": "text",
      "waiting!": "number",
      "inFlight!": "number",
      "retrying!": "number",
      "dead!": "number",
    },
  ],
} as const;
const lettersShape = {
  "items!": [
    {
      "id!": "number",
      "buriedAt!": "text",
      "attempts!": "number",
      "reason!": "text",
      "message!": "text",
      "event!": { "*": "any" },
    },
  ],
  next: "number",
} as const;

const base = (namespace: string) =>
  `/events/v1/namespaces/${encodeURIComponent(namespace)}/subscriptions`;

export const queueStates = async (namespace: string): Promise<QueueState[]> =>
  fitted<{ items: QueueState[] }>(statesShape, await json(base(namespace))).items;

export async function deadLetters(
  namespace: string,
  name: string,
  after?: number,
): Promise<{ items: DeadLetter[]; next?: number }> {
  const from = after === undefined ? "" : `&after=${after}`;
  const path = `${base(namespace)}/${name}/deadletters?limit=50${from}`;
  const { value, text } = await adminAnswer(path);
  const page = fitted<{ items: DeadLetter[]; next?: number }>(lettersShape, value);
  const texts = elementTexts(text, "items");
  const items = page.items.map((letter, index) => ({
    ...letter,
    eventText: indentJson(memberText(texts[index] ?? "{}", "event") ?? "", 2),
  }));
  return { ...page, items };
}

export const redrive = (
  namespace: string,
  name: string,
  which: Which,
): Promise<{ count: number }> => json(`${base(namespace)}/${name}/deadletters/redrive`, which);

export const discardLetters = (
  namespace: string,
  name: string,
  which: Which,
): Promise<{ count: number }> => json(`${base(namespace)}/${name}/deadletters/discard`, which);

export type Which = { ids: number[] } | { all: true };
