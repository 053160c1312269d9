/** In the documented style of the neighbours. */
import { expect } from "vitest";
import { bound, dependencies, json, type Sample } from "./sample.ts";

export const neighbourSamples: Sample[] = [
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
  {
    is: "Fission: (context), with a package",
    name: "fission",
    spec: { dependencies: dependencies({ moment: "^2.30.0" }) },
    source: `const moment = require('moment');

module.exports = async (context) => {
  const { day } = context.request.query;
  const date = moment.utc(day, 'YYYY-MM-DD', true);
  if (!date.isValid()) return { status: 400, body: 'which day?' };
  return {
    status: 200,
    headers: { 'X-Method': context.request.method },
    body: { weekday: date.format('dddd'), note: context.request.body && context.request.body.note },
  };
}`,
    calls: [
      { answer: { status: 400, body: "which day?" } },
      {
        call: { path: "/?day=2026-01-02", headers: json, body: '{"note":"n"}' },
        answer: {
          status: 200,
          headers: { "x-method": "POST" },
          body: '{"weekday":"Friday","note":"n"}',
        },
      },
    ],
  },
  {
    is: "Nuclio: handler(context, event), with what initContext has made",
    name: "nuclio",
    source: `exports.initContext = async function (context) {
  context.userData.words = new Map([['one', 1], ['two', 2]]);
};

exports.handler = function (context, event) {
  const { words } = context.userData;
  const word = event.body.toString();
  context.logger.infoWith('looking up', { word });
  if (!words.has(word)) return context.callback([404, { unknown: word }]);
  context.callback(new context.Response(String(words.get(word) * Number(event.fields.times)), { 'X-Path': event.path }, 'text/plain', 200));
};`,
    calls: [
      {
        call: { path: "/words?times=3", method: "POST", body: "two" },
        answer: { status: 200, headers: { "x-path": "/words" }, body: "6" },
      },
      {
        call: { method: "POST", body: "ten" },
        answer: { status: 404, body: '{"unknown":"ten"}' },
      },
    ],
  },
  {
    is: "OpenFaaS: (event, context)",
    name: "openfaas",
    source: `module.exports = async (event, context) => {
  const lines = String(event.body).split('\\n').length;
  return context.status(201).headers({ 'X-Type': event.headers['content-type'] }).succeed({ lines });
}`,
    calls: [
      {
        call: { method: "POST", body: "a\nb" },
        answer: { status: 201, headers: { "x-type": "text/plain" }, body: '{"lines":2}' },
      },
    ],
  },
];
