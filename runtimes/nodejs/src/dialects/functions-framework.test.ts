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
    status: 204,
    body: "",
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
  ...[
    ["application/json", `{"a":1}`, "object"],
    ["application/cloudevents+json", `{"a":1}`, "object"],
    ["application/vnd.api+json", `{"a":1}`, "bytes"],
    ["application/ld+json", `{`, "bytes"],
    ["text/plain", `{"a":1}`, "string"],
    ["text/html", `{"a":1}`, "bytes"],
  ].map(([type = "", sent = "", kind]) => ({
    name: `Functions Framework, http, a body of ${type}`,
    code: `require("@google-cloud/functions-framework").http("f", ({ body, rawBody }, res) => res.send((Buffer.isBuffer(body) ? "bytes" : typeof body) + " " + rawBody));`,
    request: { method: "POST", headers: { "content-type": type }, body: sent },
    body: `${kind} ${sent}`,
  })),
  {
    name: "Functions Framework, http, behind proxies",
    code: `require("@google-cloud/functions-framework").http("f", (req, res) => res.json([req.protocol, req.secure, req.ip, req.ips, req.hostname, req.host, req.subdomains]));`,
    request: {
      headers: {
        "x-forwarded-for": "1.2.3.4, 5.6.7.8",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "a.example.com:8443",
      },
    },
    body: '["https",true,"1.2.3.4",["1.2.3.4","5.6.7.8"],"a.example.com","a.example.com:8443",["a"]]',
  },
  {
    name: "Functions Framework, http, with req.app",
    code: `require("@google-cloud/functions-framework").http("f", ({ app, executionId, res: same }, res) => { app.locals.seen = 1; app.set("own", 2);
      res.json([app.get("trust proxy"), app.enabled("x-powered-by"), app.get("own"), app.locals.seen, res.app === app, same === res, executionId]); });`,
    request: { headers: { "function-execution-id": "one" } },
    body: '[true,false,2,1,true,true,"one"]',
  },
  {
    name: "main's request, without what proxies say of the host, and with req.app",
    code: `exports.main = ({ extensions: { request } }) => [request.hostname, request.subdomains, request.app.enabled("trust proxy"), typeof request.app.locals];`,
    request: { headers: { "x-forwarded-host": "a.example.com" } },
    body: '["127.0.0.1",[],false,"object"]',
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
        "ce-source": "//pubsub.googleapis.com/projects/p/topics/t",
      },
      sent: '{"message":{"data":"aGk=","messageId":"7"},"subscription":"s"}',
      body: `[{"data":"aGk="},{"eventId":"1","eventType":"google.pubsub.topic.publish","resource":{"service":"pubsub.googleapis.com","name":"projects/p/topics/t","type":"type.googleapis.com/google.pubsub.v1.PubsubMessage"}}]`,
    },
    {
      name: "an object of Storage",
      headers: {
        ...event,
        "ce-type": "google.cloud.storage.object.v1.finalized",
        "ce-source": "//storage.googleapis.com/projects/_/buckets/b",
        "ce-subject": "objects/o",
      },
      sent: '{"kind":"storage#object","name":"o"}',
      body: `[{"kind":"storage#object","name":"o"},{"eventId":"1","eventType":"google.storage.object.finalize","resource":{"name":"projects/_/buckets/b/objects/o","service":"storage.googleapis.com","type":"storage#object"}}]`,
    },
    {
      name: "an event of another service",
      headers: event,
      sent: '{"a":1}',
      body: '[{"a":1},{"id":"1","type":"made","source":"/me","datacontenttype":"application/json"}]',
    },
    {
      name: "what Pub/Sub pushes",
      headers: {},
      sent: '{"message":{"data":"aGk=","messageId":"7","publishTime":"2026-01-01T00:00:00Z"},"subscription":"s"}',
      body: `[{"@type":"type.googleapis.com/google.pubsub.v1.PubsubMessage","data":"aGk=","attributes":{}},{"eventId":"7","timestamp":"2026-01-01T00:00:00Z","eventType":"google.pubsub.topic.publish","resource":{"service":"pubsub.googleapis.com","type":"type.googleapis.com/google.pubsub.v1.PubsubMessage","name":null}}]`,
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
    status: 204,
    body: "",
  },
  {
    name: "Functions Framework, http, without a body there is an empty one",
    code: `require("@google-cloud/functions-framework").http("greet", (req, res) => res.send("Hello " + (req.body.name ?? "you")));`,
    body: "Hello you",
  },
];

const converted: Row[] = [
  [
    "what Pub/Sub pushes",
    '{"message":{"data":"aGk=","messageId":"7","publishTime":"2026-01-01T00:00:00Z"},"subscription":"s"}',
    '["google.cloud.pubsub.topic.v1.messagePublished","//pubsub.googleapis.com/",null,{"message":{"messageId":"7","publishTime":"2026-01-01T00:00:00Z","@type":"type.googleapis.com/google.pubsub.v1.PubsubMessage","data":"aGk=","attributes":{}}}]',
  ],
  [
    "a background event of Storage",
    '{"context":{"eventId":"1","eventType":"google.storage.object.finalize","resource":{"service":"storage.googleapis.com","name":"projects/_/buckets/b/objects/o"}},"data":{"a":1}}',
    '["google.cloud.storage.object.v1.finalized","//storage.googleapis.com/projects/_/buckets/b","objects/o",{"a":1}]',
  ],
  [
    "an older event of Firestore",
    '{"eventId":"1","eventType":"providers/cloud.firestore/eventTypes/document.write","resource":"projects/p/databases/(default)/documents/c/d","data":{"a":1}}',
    '["google.cloud.firestore.document.v1.written","//firestore.googleapis.com/projects/p/databases/(default)","documents/c/d",{"a":1}]',
  ],
  ["anything else, as it is", '{"data":1}', "[null,null,null,1]"],
].map(([name = "", sent = "", body = ""]) => ({
  name: `Functions Framework, CloudEvent, ${name}`,
  code: `require("@google-cloud/functions-framework").cloudEvent("on", (e) => [e.type, e.source, e.subject, e.data]);`,
  request: { method: "POST", headers: json, body: sent },
  body,
}));

const proxied = { "x-forwarded-for": "1.2.3.4, 5.6.7.8", "x-forwarded-proto": "https" };
const seen = `(req, res) => res.json([req.protocol, req.secure, req.ip, req.ips])`;
const behindProxy: Row[] = [
  {
    name: "Functions Framework, http, with what proxies say",
    code: `require("@google-cloud/functions-framework").http("seen", ${seen});`,
    request: { headers: proxied },
    body: '["https",true,"1.2.3.4",["1.2.3.4","5.6.7.8"]]',
  },
  {
    name: "main, without what proxies say",
    code: `exports.main = ({ extensions: { request: req } }) => [req.protocol, req.secure, req.ip, req.ips];`,
    request: { headers: proxied },
    body: '["http",false,"127.0.0.1",[]]',
  },
];
rows.push(...converted, ...behindProxy);

describe("a Function is answered by", () => {
  test.each(rows)("$name", expectAnswer);
});
