import { describe, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";

const json = { "content-type": "application/json" };
const event = { "ce-id": "1", "ce-type": "made", "ce-source": "/me" };

const rows: Row[] = [
  {
    name: "Functions Framework, http",
    code: `require("@google-cloud/functions-framework").http("greet", (req, res) => res.status(202).send(req.query.x + req.rawBody));`,
    request: { method: "POST", headers: json, body: '{"a": 1}' },
    status: 202,
    body: '1,2{"a": 1}',
  },
  {
    name: "Functions Framework, one of several, in an ES module",
    code: `import { http } from "@google-cloud/functions-framework"; http("a", (req, res) => res.send("a")); http("b", (req, res) => res.send("b"));`,
    env: { FUNCTION_TARGET: "a" },
    body: "a",
  },
  {
    name: "Functions Framework, CloudEvent",
    code: `require("@google-cloud/functions-framework").cloudEvent("on", (event) => { if (event.data.a !== 1) throw event; });`,
    request: { method: "POST", headers: { ...json, ...event }, body: '{"a":1}' },
    status: 204,
    body: "",
  },
  {
    name: "Functions Framework, CloudEvent, and there is none",
    code: `exports.on = () => {};`,
    env: { FUNCTION_TARGET: "on", FUNCTION_SIGNATURE_TYPE: "cloudevent" },
    status: 400,
    body: "the request is not a CloudEvent",
  },
  {
    name: "Functions Framework, CloudEvent with a callback",
    code: `require("@google-cloud/functions-framework").cloudEvent("on", (event, done) => { setTimeout(() => done(null, "done " + event.data.a)); });`,
    request: { method: "POST", headers: { ...json, ...event }, body: '{"a":1}' },
    body: "done 1",
  },
  {
    name: "Functions Framework, a callback with an error",
    code: `require("@google-cloud/functions-framework").cloudEvent("on", (event, done) => { done("some error"); });`,
    request: { method: "POST", headers: { ...json, ...event }, body: '{"a":1}' },
    status: 500,
    body: "some error",
  },
  {
    name: "Functions Framework, typed",
    code: `require("@google-cloud/functions-framework").typed("add", ({ a }) => ({ sum: a + 1 }));`,
    request: { method: "POST", headers: json, body: '{"a":1}' },
    body: '{"sum":2}',
  },
  {
    name: "Functions Framework, http, a form with files",
    code: `require("@google-cloud/functions-framework").http("form", (req, res) => res.send(req.rawBody.toString() === "--b--" && req.body === req.rawBody));`,
    request: {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=b" },
      body: "--b--",
    },
    body: "true",
  },
  ...[
    {
      name: "a message of Pub/Sub",
      headers: {
        ...event,
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-subject": "s",
      },
      sent: '{"message":{"data":"aGk="}}',
      body: '[{"data":"aGk="},{"eventId":"1","eventType":"google.cloud.pubsub.topic.v1.messagePublished","resource":"/me/s"}]',
    },
    {
      name: "as it is",
      headers: {},
      sent: '{"data":1,"context":{"eventId":"2"}}',
      body: '[1,{"eventId":"2"}]',
    },
    {
      name: "without a context",
      headers: {},
      sent: '{"data":1,"eventId":"2"}',
      body: '[1,{"eventId":"2"}]',
    },
  ].map(({ name, headers, sent, body }) => ({
    name: `Functions Framework, background, ${name}`,
    code: `exports.on = (data, context, done) => done(null, [data, context]);`,
    env: { FUNCTION_TARGET: "on", FUNCTION_SIGNATURE_TYPE: "event" },
    request: { method: "POST", headers: { ...json, ...headers }, body: sent },
    body,
  })),
  {
    name: "Functions Framework, background, without an event",
    code: `exports.on = () => {};`,
    env: { FUNCTION_TARGET: "on", FUNCTION_SIGNATURE_TYPE: "event" },
    status: 400,
    body: "the request is not an event: its body has no data",
  },
  {
    name: "Functions Framework, http, without a body there is an empty one",
    code: `require("@google-cloud/functions-framework").http("greet", (req, res) => res.send("Hello " + (req.body.name ?? "you")));`,
    body: "Hello you",
  },
];

describe("a Function is answered by", () => {
  test.each(rows)("$name", expectAnswer);
});
