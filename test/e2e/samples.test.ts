/** Handlers in the documented style of the system that Spry succeeds, and of its neighbours, as people bring them. */
import { expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { type Answer, type CallOptions } from "../support/calls.ts";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";

const platform = enginePlatform();

interface Sample {
  is: string;
  name: string;
  spec?: Record<string, unknown>;
  source: string;
  calls: { call?: CallOptions; answer: Partial<Answer> | Record<string, unknown> }[];
}

const dependencies = (names: Record<string, string>, more = {}) =>
  JSON.stringify({ name: "sample", version: "1.0.0", dependencies: names, ...more });
const json = { "content-type": "application/json" };
const bound = { "ce-specversion": "1.0", "ce-id": "7", "ce-source": "me", "ce-type": "ping" };

const samples: Sample[] = [
  {
    is: "main(event, context), CommonJS, with a package",
    name: "legacy-cjs",
    spec: { dependencies: dependencies({ lodash: "^4.17.20" }) },
    source: `const _ = require('lodash')
module.exports = {
  main: function (event, context) {
    return _.kebabCase('From ' + context['function-name'])
  }
}`,
    calls: [{ answer: { status: 200, body: "from-legacy-cjs" } }],
  },
  {
    is: "main(event, context), an ES module, with a package",
    name: "legacy-esm",
    spec: { dependencies: dependencies({ lodash: "^4.17.20" }, { type: "module" }) },
    source: `import _ from 'lodash'
export function main(event, context) {
  return _.upperFirst(context.runtime)
}`,
    calls: [{ answer: { status: 200, body: "Nodejs24" } }],
  },
  {
    is: "statuses by the response, and null as a result",
    name: "legacy-rest",
    source: `const values = new Map()
module.exports = {
  main: async function (event, _) {
    const { request: req, response } = event.extensions
    let result
    try {
      const key = req.path.substring(1)
      if (req.method === 'POST') {
        response.status(values.has(key) ? 409 : 201)
        values.set(key, req.body)
      } else if (values.has(key)) {
        result = values.get(key)
      } else {
        response.status(404)
        result = null
      }
    } finally {
      return result
    }
  }
}`,
    calls: [
      { call: { path: "/a" }, answer: { status: 404 } },
      {
        call: { path: "/a", method: "POST", headers: json, body: '{"n":1}' },
        answer: { status: 201, body: "" },
      },
      { call: { path: "/a" }, answer: { status: 200, body: '{"n":1}' } },
    ],
  },
  {
    is: "a span of its own by event.tracer and @opentelemetry/api",
    name: "legacy-span",
    spec: { dependencies: dependencies({ "@opentelemetry/api": "^1.0.4" }) },
    source: `const { SpanStatusCode } = require('@opentelemetry/api')
module.exports = {
  main: async function (event, context) {
    const span = event.tracer.startSpan('work')
    span.addEvent('begun')
    span.setAttribute('kind', event.data.kind)
    span.setStatus({ code: SpanStatusCode.OK })
    span.end()
    return { kind: event.data.kind, code: SpanStatusCode.OK }
  }
}`,
    calls: [
      {
        call: { headers: json, body: '{"kind":"demo"}' },
        answer: { status: 200, body: '{"kind":"demo","code":1}' },
      },
    ],
  },
  {
    is: "main(req, res) of the newer contract, in every version",
    name: "newer",
    spec: { runtime: "nodejs26" },
    source: `module.exports = {
  main: function (req, res) {
    res.status(202).json({ got: req.body, to: req.path })
  }
}`,
    calls: [
      {
        call: { path: "/x", headers: json, body: '{"a":1}' },
        answer: { status: 202, body: '{"got":{"a":1},"to":"/x"}' },
      },
    ],
  },
  {
    is: "Functions Framework: http, as with Express",
    name: "framework",
    spec: {
      dependencies: dependencies({
        "@google-cloud/functions-framework": "^5.0.0",
        "escape-html": "^1.0.3",
      }),
    },
    source: `'use strict';
const functions = require('@google-cloud/functions-framework');
const escapeHtml = require('escape-html');
functions.http('greet', (req, res) => {
  const who = (req.query && req.query.who) || (req.body && req.body.who) || 'nobody';
  res.set('X-Greeter', 'framework').status(201).send('Dear ' + escapeHtml(who));
});`,
    calls: [
      {
        call: { path: "/?who=%3Cb%3E" },
        answer: { status: 201, headers: { "x-greeter": "framework" }, body: "Dear &lt;b&gt;" },
      },
      {
        call: { headers: json, body: '{"who":"Ada"}' },
        answer: { body: "Dear Ada" },
      },
    ],
  },
  {
    is: "func: handle(context, body)",
    name: "func-http",
    source: `const handle = async (context, body) => {
  context.log.info('query', context.query);
  context.log.info('body', body);
  return { statusCode: 201, headers: { 'x-by': 'func' }, body: { query: context.query, body } };
}
module.exports = { handle };`,
    calls: [
      {
        call: { path: "/?a=1", headers: json, body: '{"b":2}' },
        answer: {
          status: 201,
          headers: { "x-by": "func" },
          body: '{"query":{"a":"1"},"body":{"b":2}}',
        },
      },
    ],
  },
  {
    is: "func: handle(context, event) answers with an event of the cloudevents package",
    name: "func-event",
    spec: { dependencies: dependencies({ cloudevents: "^10.0.0" }) },
    source: `const { CloudEvent } = require('cloudevents');
const handle = async (context, event) => {
  context.log.info('event', event);
  return new CloudEvent({ source: 'function', type: 'pong', data: { to: event.type, data: event.data } });
};
module.exports = { handle };`,
    calls: [
      {
        call: { headers: { ...bound, ...json }, body: '{"n":1}' },
        answer: {
          status: 200,
          headers: {
            "ce-type": "pong",
            "ce-source": "function",
            "content-type": expect.stringMatching(/^application\/json/),
          },
          body: '{"to":"ping","data":{"n":1}}',
        },
      },
    ],
  },
  {
    is: "AWS Lambda behind an HTTP API (payload 2.0)",
    name: "lambda",
    source: `export const handler = async (event) => {
  const { method, path } = event.requestContext.http;
  const name = event.queryStringParameters?.name ?? 'nobody';
  return {
    statusCode: 200,
    headers: { 'content-type': 'text/plain' },
    cookies: ['seen=1'],
    body: [event.version, method, path, name].join(' '),
  };
};`,
    calls: [
      {
        call: { path: "/who?name=Ada" },
        answer: {
          status: 200,
          headers: { "set-cookie": ["seen=1"] },
          body: "2.0 GET /who Ada",
        },
      },
    ],
  },
];

const python: Sample[] = [
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
];

/** Images for a cluster are made from what this machine has; on one machine an interpreter is fetched. */
const missing = (spec: Sample["spec"]) =>
  onCluster && spec?.["runtime"] === "nodejs26"
    ? "this machine has no Node.js 26 for an image"
    : "";

const runs = async ({ name, spec, source, calls }: Sample) => {
  await platform.k("apply -f -", functionManifest(name, source, spec ?? {}));
  await platform.k(`wait --for=condition=Running function/${name} --timeout=110s`);
  for (const { call, answer } of calls)
    expect(await platform.call(`${name}.default`, call)).toMatchObject(answer);
};

for (const sample of samples) {
  const why = missing(sample.spec);
  test.skipIf(why)(`${sample.is}${why && ` (skipped: ${why})`}`, () => runs(sample));
}
test.skipIf(!(await findPython("3.12"))).each(python)("$is (needs Python 3.12)", runs);
