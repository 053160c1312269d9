import { KubeClient } from "@spry/kube";
import { expect, test } from "vitest";
import { exceptionIn, explained } from "./exceptions.ts";

const nodeLog = `ready
request a-1 (POST /): the handler threw: TypeError: the order has no price
    at main (handler.js:3:9)
request a-2 (POST /): took too long
`;
const pythonLog = `request b-1 (POST /): calling the function
Traceback (most recent call last):
  File "/usr/src/app/function/handler.py", line 2, in main
    raise ValueError("no price")
ValueError: no price
request b-2 (POST /): calling the function
`;

test.each([
  [nodeLog, "a-1", "TypeError: the order has no price"],
  [nodeLog, "a-2", undefined],
  [nodeLog, "a", undefined],
  [nodeLog, "b-1", undefined],
  [pythonLog, "b-1", "ValueError: no price"],
  [pythonLog, "b-2", undefined],
])("the exception of a request is found in a log (%#)", (log, request, text) => {
  expect(exceptionIn(log, request)).toBe(text);
});

test("a dead letter's reason has the exception's text, if the sink's log has it", async () => {
  const asked: string[] = [];
  const client = new KubeClient(async ({ url }) => {
    const { pathname } = new URL(url);
    asked.push(pathname);
    if (pathname.endsWith("/subscriptions/orders"))
      return Response.json({ spec: { sink: "http://shop.sales.svc.cluster.local/orders" } });
    if (pathname.endsWith("/sales/pods"))
      return Response.json({
        kind: "PodList",
        metadata: {},
        items: [{ metadata: { name: "shop-1", namespace: "sales" } }],
      });
    if (pathname.endsWith("/pods/shop-1/log")) return new Response(nodeLog);
    return Response.json({ kind: "Status", code: 403, reason: "Forbidden" }, { status: 403 });
  });
  const where = { namespace: "default", subscription: "orders" };
  const messages = [
    "attempt 2 of 2: HTTP 500: Internal server error (request a-1)",
    "attempt 2 of 2: HTTP 500: Internal server error (request unknown)",
    "attempt 2 of 2: HTTP 404: not found",
  ];
  expect(
    await explained(
      client,
      where,
      messages.map((message) => ({ message })),
    ),
  ).toEqual([
    "attempt 2 of 2: HTTP 500: TypeError: the order has no price",
    messages[1],
    messages[2],
  ]);
  asked.length = 0;
  const [last = ""] = messages.slice(2);
  expect(await explained(client, where, [{ message: last }])).toEqual([last]);
  expect(asked).toEqual([]);
  const foreign = { namespace: "default", subscription: "other" };
  const [first = ""] = messages;
  expect(await explained(client, foreign, [{ message: first }])).toEqual([first]);
});
