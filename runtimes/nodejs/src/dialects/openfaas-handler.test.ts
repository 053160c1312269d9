import { describe, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";

const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "OpenFaaS, by the context",
    code: `module.exports = async (event, context) => context.status(201).headers({ "x-a": event.method }).succeed({ path: event.path, x: event.query.x, body: event.body });`,
    request: { method: "POST", headers: { "content-type": "application/json" }, body: '{"b":1}' },
    status: 201,
    body: '{"path":"/a/b","x":["1","2"],"body":{"b":1}}',
    headers: { "x-a": "POST" },
  },
  {
    name: "OpenFaaS, by what it returns",
    code: `export default async (event, context) => { context.status(202); return "returned"; };`,
    status: 202,
    body: "returned",
  },
  {
    name: "OpenFaaS, by callback",
    code: `module.exports = (event, context, callback) => { setTimeout(callback, 5, undefined, { a: 1 }); };`,
    body: '{"a":1}',
  },
  {
    name: "OpenFaaS, with a failure",
    code: `module.exports = (event, context) => { context.status(400).fail("no such thing"); };`,
    status: 400,
    body: "no such thing",
  },
  {
    name: "OpenFaaS, with an error",
    code: `module.exports = async () => { throw new Error("secret"); };`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "OpenFaaS, a body without a type is text",
    code: `module.exports = async (event) => [event.body, event.headers["content-type"]];`,
    request: { method: "POST", body: "words" },
    body: '["words","text/plain"]',
  },
  {
    name: "OpenFaaS, a body as bytes",
    code: `module.exports = async (event) => String(Buffer.isBuffer(event.body)) + event.body;`,
    env: { RAW_BODY: "true" },
    request: { method: "POST", headers: json, body: '{"a' },
    body: 'true{"a',
  },
  {
    name: "OpenFaaS, taking nothing",
    code: `module.exports = async () => ({ status: "done" });`,
    body: '{"status":"done"}',
  },
];

describe("a Function is answered by", () => {
  test.each(rows)("$name", expectAnswer);
});
