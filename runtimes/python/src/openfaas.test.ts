/** Handlers in the style of OpenFaaS, as its documents write them. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const withEvent = `
def handle(event, context):
    if event.method == "PUT":
        return {"statusCode": 405, "body": "not that"}
    return {
        "statusCode": 201,
        "headers": {"X-Type": event.headers.get("Content-Type")},
        "body": {"body": event.body.decode(), "x": event.query["x"], "path": event.path, "host": context.hostname},
    }
`;
const call = { method: "POST", headers: { "content-type": "text/plain" }, body: "words" };

const rows: Row[] = [
  {
    name: "an object as body",
    files: { "handler.py": withEvent },
    env: { HOSTNAME: "pod-1" },
    target: "/a?x=1",
    call,
    status: 201,
    body: '{"body": "words", "x": "1", "path": "/a", "host": "pod-1"}',
    headers: { "content-type": "application/json", "x-type": "text/plain" },
  },
  {
    name: "a status and text",
    files: { "handler.py": withEvent },
    call: { method: "PUT" },
    status: 405,
    body: "not that",
    headers: { "content-type": "text/html; charset=utf-8" },
  },
  ...[
    { is: "nothing", answer: "None", body: "" },
    { is: "a status alone", answer: `{"statusCode": 202}`, status: 202, body: "" },
    { is: "bytes", answer: `{"body": b"bytes"}`, body: "bytes" },
    { is: "anything else, as text", answer: `{"body": [1, None]}`, body: "[1, None]" },
    {
      is: "headers as pairs, with a type",
      answer: `{"body": "a,b", "headers": [("content-type", "text/csv"), ("x-a", "1")]}`,
      body: "a,b",
      headers: { "content-type": "text/csv", "x-a": "1" },
    },
    {
      is: "an object that names no part of an answer",
      answer: `{"message": "hi"}`,
      body: '{"message": "hi"}',
      headers: { "content-type": "application/json" },
    },
    { is: "text and a status, as with Flask", answer: `("made", 201)`, status: 201, body: "made" },
    {
      is: "a status that is none",
      answer: `{"statusCode": 7}`,
      status: 500,
      body: "Internal server error",
    },
  ].map(({ is, answer, ...more }) => ({
    name: `the event, and ${is} in return`,
    files: { "handler.py": `def handle(event, context): return ${answer}` },
    ...more,
  })),
  {
    name: "the event, asynchronously",
    files: { "handler.py": `async def handle(event, context): return {"body": event.method}` },
    body: "GET",
  },
  {
    name: "the body as text",
    files: { "handler.py": `def handle(req): return "Hi " + req` },
    call,
    body: "Hi words",
  },
  {
    name: "the body as bytes",
    files: { "handler.py": `def handle(req): return str(req), 202, {"X-A": "1"}` },
    env: { RAW_BODY: "True" },
    call,
    status: 202,
    body: "b'words'",
    headers: { "x-a": "1" },
  },
  {
    name: "files of a package, relative to each other and by its name",
    files: {
      "handler.py": `
from .words import hello
from function import words
def handle(event, context): return {"body": hello() + str(words.hello is hello)}`,
      "words.py": `def hello(): return "hello "`,
      "__init__.py": "",
    },
    body: "hello True",
  },
];

describe.skipIf(missingPython)("a handler of OpenFaaS takes", () => {
  test.each(rows)("$name", expectAnswer);

  const flask = installPackages("flask==3.1.3");
  test
    .skipIf(!flask)
    .each(["def handle(req)", "async def handle(req)", "def handle(event, context)"])(
    "and has Flask's request at hand: %s",
    async (signature) => {
      const code = `
from flask import jsonify, request
${signature}:
    return jsonify(path=request.path, a=request.headers["X-A"]), 202`;
      await using runtime = await PythonRuntime.start(code, { PYTHONPATH: flask ?? "" });
      expect(await runtime.call("/p", { headers: { "x-a": "1" } })).toMatchObject({
        status: 202,
        body: '{"a":"1","path":"/p"}\n',
      });
    },
  );
});
