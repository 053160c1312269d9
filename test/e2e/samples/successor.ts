/** In the documented style of the system that Spry succeeds. */
import { dependencies, json, type Sample } from "./sample.ts";

export const successorSamples: Sample[] = [
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
    is: "packages that the images brought, in code that declares none",
    name: "legacy-undeclared",
    source: `const axios = require("axios")
const { CloudEvent } = require("cloudevents")
const { SpanStatusCode } = require('@opentelemetry/api')
module.exports = {
  main: function (event, context) {
    const span = event.tracer.startSpan('asking')
    const address = axios.getUri({ url: '/ships', params: { of: event.data.class } })
    const told = new CloudEvent({ source: address, type: 'ship.asked', data: {} })
    span.setStatus({ code: SpanStatusCode.OK }).end()
    return { type: told.type, source: told.source, ok: SpanStatusCode.OK }
  }
}`,
    calls: [
      {
        call: { headers: json, body: '{"class":"tug"}' },
        answer: {
          status: 200,
          body: '{"type":"ship.asked","source":"/ships?of=tug","ok":1}',
        },
      },
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
];
