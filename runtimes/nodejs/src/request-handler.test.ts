import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const nodejs26 = { FUNC_RUNTIME: "nodejs26" };

const answers: { code: string; status?: number; body: string }[] = [
  { code: `res.send("a " + req.query.n)`, body: "a 0" },
  { code: `res.status(201).json({ a: 1 })`, status: 201, body: '{"a":1}' },
  { code: `setTimeout(() => res.end("later"), 10); return "ignored"`, body: "later" },
  { code: `Promise.resolve().then(() => res.end("async")); return {}`, body: "async" },
  { code: `throw new Error("secret")`, status: 500, body: "Internal server error" },
  { code: `return Promise.reject("said")`, status: 500, body: "said" },
  { code: `res.json(req.body ?? "absent")`, body: '"absent"' },
];

describe("main(request, response) of nodejs26", () => {
  test("answers by the response, and only by it", async () => {
    const cases = answers.map(({ code }) => `(req, res) => { ${code}; }`).join(",\n");
    const { url } = await startFunction(
      `const cases = [${cases}]; exports.main = (req, res) => cases[req.query.n](req, res);`,
      nodejs26,
    );
    for (const [n, { code, status = 200, body }] of answers.entries()) {
      const answer = await send(`${url}/?n=${n}`);
      expect({ code, status: answer.status, body: answer.body }).toEqual({ code, status, body });
    }
  });

  test("finds the parsed body in the request", async () => {
    const { url } = await startFunction(
      `exports.main = (req, res) => res.json(req.body);`,
      nodejs26,
    );
    const headers = { "content-type": "application/json" };
    const answer = await send(url, { method: "POST", headers, body: '{"a":[1]}' });
    expect(answer.body).toBe('{"a":[1]}');
  });

  test("is 408 when it does not answer in time, and counted until it does", async () => {
    const { url } = await startFunction(`exports.main = async () => "unheard";`, {
      ...nodejs26,
      FUNC_TIMEOUT: "0.1",
    });
    expect((await send(url)).status).toBe(408);
    expect((await send(`${url}/metrics`)).body).toContain("\nfunction_in_flight_requests 0\n");
  });
});

const imports = {
  "require of CommonJS": {
    "handler.js": `const sdk = require("sdk"); exports.main = (req, res) => res.json(ask(sdk, req));`,
  },
  "import of an ES module": {
    "handler.mjs": `import * as sdk from "sdk"; export const main = (req, res) => res.json(ask(sdk, req));`,
  },
  "import by name": {
    "handler.js": `import { getTracer, getCloudEvent, getFunctionName, getNamespace, getRuntime, getTimeout, getBodySizeLimit } from "sdk";
      const sdk = { getTracer, getCloudEvent, getFunctionName, getNamespace, getRuntime, getTimeout, getBodySizeLimit };
      export const main = (req, res) => res.json(ask(sdk, req));`,
  },
};

const ask = `
function ask(sdk, request) {
  return [sdk.getFunctionName(), sdk.getNamespace(), sdk.getRuntime(), sdk.getTimeout(), sdk.getBodySizeLimit(),
    sdk.getCloudEvent(request), typeof sdk.getTracer().startSpan];
}`;

describe("the sdk module", () => {
  test.each(Object.entries(imports))("is there for %s", async (_name, files) => {
    const all = Object.entries(files).map(([name, text]) => [name, text + ask]);
    const { url } = await startFunction(Object.fromEntries(all) as Record<string, string>, {
      ...nodejs26,
      FUNC_BODY_MB_LIMIT: "2",
    });
    const plain: unknown[] = ["hello", "default", "nodejs26", 180, 2, null, "function"];
    expect(JSON.parse((await send(url)).body)).toEqual(plain);
    const headers = {
      "ce-id": "1",
      "ce-type": "made",
      "ce-source": "me",
      "content-type": "text/plain",
    };
    const event = { id: "1", type: "made", source: "me", datacontenttype: "text/plain", data: "x" };
    const answer = await send(url, { method: "POST", headers, body: "x" });
    expect(JSON.parse(answer.body)).toEqual(plain.with(5, event));
    const malformed = await send(url, { headers: { ...headers, "ce-id": "" } });
    expect(JSON.parse(malformed.body)).toEqual(plain);
  });

  test("publishes events", async () => {
    const target = await startFunction(
      `exports.main = (event) => ({ type: event["ce-type"], data: event.data });`,
    );
    const { url } = await startFunction(
      `exports.main = async (req, res) => res.json((await require("sdk").emitCloudEvent("made", "me", { a: 1 })).data);`,
      { ...nodejs26, PUBLISHER_PROXY_ADDRESS: target.url },
    );
    expect(JSON.parse((await send(url)).body)).toEqual({ type: "made", data: { a: 1 } });
  });

  test("gives way to a dependency of that name", async () => {
    const { url } = await startFunction({
      "handler.js": `exports.main = () => require("sdk");`,
      "node_modules/sdk/index.js": `module.exports = "theirs";`,
    });
    expect((await send(url)).body).toBe("theirs");
  });
});

test("settings go by their new names too, which come first", async () => {
  const { url, stdout } = await startFunction(
    { "app.js": `exports.run = (req, res) => res.end("ran");` },
    {
      ...nodejs26,
      HANDLER_MOD_NAME: "app",
      MOD_NAME: "handler",
      HANDLER_FUNC_NAME: "run",
      FUNC_HANDLER: "main",
      SERVER_INTERNAL_LOGGER: "1",
    },
  );
  expect((await send(url)).body).toBe("ran");
  await expect.poll(stdout).toMatch(/"GET \/ HTTP/);
});
