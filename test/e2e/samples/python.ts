/** In Python: of the system that Spry succeeds, and of the neighbours. */
import { json, type Sample } from "./sample.ts";

export const pythonSamples: Sample[] = [
  {
    is: "Python: the request's params, and an HTTPResponse of bottle",
    name: "legacy-python",
    spec: { runtime: "python312" },
    source: `import os
from bottle import HTTPResponse

def main(event, context):
    text = event['extensions']['request'].params.get('text')
    if not text:
        return HTTPResponse(body='"text" is mandatory', status=400)
    return {'text': text, 'by': context['function-name']}
`,
    calls: [
      { answer: { status: 400, body: '"text" is mandatory' } },
      {
        call: { path: "/?text=a" },
        answer: { status: 200, body: '{"text": "a", "by": "legacy-python"}' },
      },
    ],
  },
  {
    is: "Python: main() with flask",
    name: "newer-python",
    spec: { runtime: "python312", dependencies: "flask>=3,<4\n" },
    source: `import flask

def main():
    return flask.jsonify(path=flask.request.path, name=flask.request.args.get("name"))
`,
    calls: [
      {
        call: { path: "/p?name=Ada" },
        answer: { status: 200, body: '{"name":"Ada","path":"/p"}\n' },
      },
    ],
  },
  {
    is: "Python: Nuclio's handler(context, event), by a name of its own",
    name: "nuclio-python",
    spec: { runtime: "python312", env: [{ name: "HANDLER_FUNC_NAME", value: "price" }] },
    source: `import nuclio_sdk

def init_context(context):
    context.user_data.cents = {"bolt": 15}

def price(context, event: nuclio_sdk.Event):
    context.logger.info_with("asked for", part=event.body["part"])
    cents = context.user_data.cents.get(event.body["part"])
    if cents is None:
        return 404, {"unknown": event.body["part"]}
    return context.Response(body={"cents": cents}, headers={"X-Part": event.body["part"]}, content_type="text/plain", status_code=200)
`,
    calls: [
      {
        call: { method: "POST", headers: json, body: '{"part":"bolt"}' },
        answer: { status: 200, headers: { "x-part": "bolt" }, body: '{"cents": 15}' },
      },
      {
        call: { method: "POST", headers: json, body: '{"part":"gear"}' },
        answer: { status: 404, body: '{"unknown": "gear"}' },
      },
    ],
  },
  {
    is: "Python: OpenFaaS' handle(event, context)",
    name: "openfaas-python",
    spec: { runtime: "python312" },
    source: `def handle(event, context):
    if event.method != "POST":
        return {"statusCode": 405, "body": "POST a text"}
    return {"statusCode": 200, "headers": {"X-By": event.query["by"]}, "body": {"words": len(event.body.split())}}
`,
    calls: [
      { answer: { status: 405, body: "POST a text" } },
      {
        call: { path: "/?by=me", method: "POST", body: "three words here" },
        answer: { status: 200, headers: { "x-by": "me" }, body: '{"words": 3}' },
      },
    ],
  },
  {
    is: "Python: OpenFaaS' handle(req)",
    name: "openfaas-classic",
    spec: { runtime: "python312" },
    source: `def handle(req):
    return req[::-1], 201
`,
    calls: [{ call: { method: "POST", body: "abc" }, answer: { status: 201, body: "cba" } }],
  },
  {
    is: "Python: Fission's main(), with what stands in for Flask",
    name: "fission-python",
    spec: { runtime: "python312" },
    source: `from flask import current_app, request

def main():
    current_app.logger.info("asked for %s", request.path)
    if not request.args.get("name"):
        return "name is missing\\n", 400
    return {"name": request.args["name"]}
`,
    calls: [
      { answer: { status: 400, body: "name is missing\n" } },
      { call: { path: "/?name=Ada" }, answer: { status: 200, body: '{"name": "Ada"}' } },
    ],
  },
];
