import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";
import { failToStart, send, startFunction } from "../testing/running-function.ts";

const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "Lambda's handler",
    code: `exports.handler = async (e, context) => ({ statusCode: 203, headers: { "x-a": "1" }, cookies: ["c=1"],
      body: [e.version, e.requestContext.http.method, e.rawPath, e.rawQueryString, e.queryStringParameters.x, e.body, e.cookies, context.getRemainingTimeInMillis() > 1000].join(" ") });`,
    request: { method: "POST", headers: { ...json, cookie: "s=1; t=2" }, body: '{"a"' },
    status: 203,
    body: '2.0 POST /a/b x=1&x=2 1,2 {"a" s=1,t=2 true',
    headers: { "x-a": "1", "set-cookie": ["c=1"] },
  },
  {
    name: "Lambda's handler that calls back with bytes",
    code: `exports.handler = (event, context, callback) => { callback(null, { statusCode: 200, body: event.body, isBase64Encoded: event.isBase64Encoded }); };`,
    request: { method: "POST", body: "bytes" },
    body: "bytes",
  },
  ...[
    `(event, context) => { setTimeout(context.succeed, 10, result); }`,
    `(event, context) => setTimeout(context.succeed, 10, result)`,
    `(event, context) => { setTimeout(context.done, 10, null, result); }`,
    `(event, context, callback) => setTimeout(() => callback(null, result), 10)`,
    `(event, context = {}, callback) => { setTimeout(callback, 10, null, result); }`,
    `(...all) => { setTimeout(all[2], 10, null, result); }`,
    `function () { setTimeout(arguments[2], 10, null, result); }`,
    `(event, context) => { const server = require("node:http").createServer(); setTimeout(context.succeed, 10, result); return server; }`,
    `(event, context) => ({ promise: new Promise(() => setTimeout(context.succeed, 10, result)) })`,
    `(event, context, callback) => { process.nextTick(callback, null, result); return 1; }`,
    `(event) => result`,
    `(event) => ({ then: (resolve) => setTimeout(resolve, 10, result) })`,
  ].map((handler) => ({
    name: `Lambda's handler that is not async: ${handler}`,
    code: `const result = { statusCode: 202, body: "ready" }; exports.handler = ${handler};`,
    status: 202,
    body: "ready",
  })),
  {
    name: "Lambda's handler that fails by its context, later",
    code: `exports.handler = (event, context) => { setTimeout(context.fail, 10, new Error("secret")); };`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "Lambda's handler that returns nothing and calls nothing",
    code: `exports.handler = (event) => {};`,
    env: { FUNC_TIMEOUT: "0.2" },
    status: 408,
    body: "Request Timeout",
  },
  {
    name: "Lambda's handler, with times as access logs have them",
    code: `exports.handler = async ({ requestContext: { time, requestTime } }) => [time, requestTime].every((each) => /^\\d\\d\\/[A-Z][a-z]{2}\\/\\d{4}:\\d\\d:\\d\\d:\\d\\d \\+0000$/.test(each));`,
    body: "true",
  },
  {
    name: "Lambda's handler that looks for what a request lacks, as in either format",
    code: `exports.handler = async (e) => ({ statusCode: 200, body: JSON.stringify([e.body, e.queryStringParameters?.x ?? 0, "body" in JSON.parse(JSON.stringify(e)),
      Object.keys(e).includes("body"), e.body === null, JSON.parse(e.body), e.stageVariables]) });`,
    body: '[null,"1,2",false,false,true,null,null]',
  },
  {
    name: "Lambda's handler, with forms as bytes, as of HTTP APIs",
    code: `exports.handler = async (e) => [e.isBase64Encoded, Buffer.from(e.body, "base64").toString()];`,
    request: {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "a=1&b=2",
    },
    body: '[true,"a=1&b=2"]',
  },
  {
    name: "Lambda's handler, with AWS' variables",
    code: `const atLoad = process.env.AWS_LAMBDA_FUNCTION_NAME;
      exports.handler = async (e, context) => { const { env } = process; return [atLoad, env.AWS_LAMBDA_FUNCTION_NAME, env.AWS_LAMBDA_FUNCTION_VERSION, env._HANDLER, env.LAMBDA_TASK_ROOT === __dirname,
        env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE, context.memoryLimitInMB, env.AWS_REGION ?? "no region"]; };`,
    env: { NODE_OPTIONS: "--max-old-space-size=76" },
    body: '["hello","hello","$LATEST","handler.handler",true,"128","128","no region"]',
  },
  {
    name: "Lambda's handler, with the user's values of AWS' variables",
    code: `exports.run = async () => [process.env.AWS_LAMBDA_FUNCTION_NAME, process.env._HANDLER, process.env.AWS_REGION];`,
    env: {
      HANDLER_DIALECT: "lambda",
      HANDLER_FUNC_NAME: "run",
      AWS_LAMBDA_FUNCTION_NAME: "own",
      AWS_REGION: "eu-central-1",
    },
    body: '["own","handler.run","eu-central-1"]',
  },
  ...[
    `exports.main = () => [process.env.AWS_LAMBDA_FUNCTION_NAME ?? "none"]; exports.handler = () => {};`,
    `export const handler = (request, response) => response.json([process.env.AWS_LAMBDA_FUNCTION_NAME ?? "none"]);`,
  ].map((code) => ({
    name: `without AWS' variables, what is not a Lambda handler: ${code}`,
    code,
    body: '["none"]',
  })),
  {
    name: "Lambda's handler that returns text",
    code: `exports.handler = (event) => "text";`,
    body: "text",
  },
  {
    name: "Lambda's handler that answers in format 1.0",
    code: `exports.handler = async () => ({ statusCode: 200, multiValueHeaders: { "X-A": ["1", "2"] }, body: "[]" });`,
    body: "[]",
    headers: { "x-a": "1, 2", "content-type": "application/json" },
  },
  {
    name: "Lambda's handler for a REST API, whose events are of format 1.0",
    code: `exports.handler = async (e) => ({ statusCode: 200, body: JSON.stringify([e.httpMethod, e.path, e.pathParameters.proxy, e.multiValueQueryStringParameters.x,
      e.multiValueHeaders["x-b"], e.multiValueHeaders.cookie, e.headers["X-B"], e.requestContext.httpMethod, e.requestContext.path, e.requestContext.identity.sourceIp]) });`,
    request: { method: "DELETE", headers: { "x-b": "c", cookie: "d=1; e=2" } },
    body: '["DELETE","/a/b","a/b",["1","2"],["c"],["d=1; e=2"],"c","DELETE","/a/b","127.0.0.1"]',
  },
  {
    name: "Lambda's handler that returns data",
    code: `exports.handler = async () => ({ a: 1 });`,
    body: '{"a":1}',
    headers: { "content-type": "application/json; charset=utf-8" },
  },
  {
    name: "Lambda's handler, as its templates call it",
    code: `export const lambdaHandler = async (event, context) => ({ statusCode: 200, body: JSON.stringify({ message: event.rawPath }) });`,
    body: '{"message":"/a/b"}',
  },
  {
    name: "Lambda's handler, told by the name that its templates have",
    code: `exports.lambdaHandler = async (event, context) => ({ statusCode: 202, body: event.version });`,
    env: { HANDLER_FUNC_NAME: "lambdaHandler" },
    status: 202,
    body: "2.0",
  },
  ...[
    ["by its name", `exports.hello`, { HANDLER_FUNC_NAME: "hello" }],
    ["called main", `exports.main`, { HANDLER_FUNC_NAME: "main" }],
    ["called main, by itself", `exports.main`, {}],
    ["by default", `exports.default`, {}],
    ["as the module", `module.exports`, {}],
    ["as the only one", `exports.config = {}; exports.run`, {}],
  ].map(([what, where, env]) => ({
    name: `Lambda's handler, of the dialect, ${String(what)}`,
    code: `${String(where)} = async (event) => ({ statusCode: 302, headers: { location: event.rawPath } });`,
    env: { HANDLER_DIALECT: "lambda", ...(env as Record<string, string>) },
    status: 302,
    body: "",
    headers: { location: "/a/b" },
  })),
  {
    name: "Lambda's stream",
    code: `exports.handler = awslambda.streamifyResponse(async (event, responseStream, context) => {
      responseStream.write(event.rawPath); responseStream.end(context.functionName); });`,
    body: "/a/bhello",
    headers: { "content-type": "application/octet-stream" },
  },
  {
    name: "Lambda's stream that says what it is",
    code: `export const handler = awslambda.streamifyResponse(async (event, responseStream) => {
      responseStream = awslambda.HttpResponseStream.from(responseStream, { statusCode: 201, headers: { "Content-Type": "text/event-stream", Connection: "keep-alive", "X-A": 1 }, cookies: ["a=1", "b=2"] });
      responseStream.end("data: 1"); });`,
    status: 201,
    body: "data: 1",
    headers: {
      "content-type": expect.stringContaining("text/event-stream"),
      "x-a": "1",
      "set-cookie": ["a=1", "b=2"],
    },
  },
  {
    name: "Lambda's stream into which another is piped",
    code: `const { pipeline } = require("node:stream/promises"); const { Readable } = require("node:stream");
      exports.handler = awslambda.streamifyResponse(async (event, responseStream) => { responseStream.setContentType("text/plain"); await pipeline(Readable.from(["a", "b"]), responseStream); });`,
    body: "ab",
    headers: { "content-type": "text/plain" },
  },
  {
    name: "Lambda's stream into which another is piped, without waiting",
    code: `const { Readable } = require("node:stream");
      exports.handler = awslambda.streamifyResponse(async (event, responseStream) => { Readable.from(["a", "b"]).pipe(responseStream); });`,
    body: "ab",
  },
  {
    name: "Lambda's stream that is left open",
    code: `exports.handler = awslambda.streamifyResponse(async (event, responseStream) => { responseStream.write("a"); });`,
    body: "a",
  },
  {
    name: "Lambda's stream that fails before it begins",
    code: `exports.handler = awslambda.streamifyResponse(async () => { throw new Error("secret"); });`,
    status: 500,
    body: "Internal server error",
  },
];

describe("a Function is answered by", () => {
  test.each(rows)("$name", expectAnswer);
});

test("a package that only AWS' runtime has is named with the way out", async () => {
  for (const name of ["aws-sdk", "@aws-sdk/client-s3"]) {
    const { stderr } = await failToStart(`require("${name}"); exports.handler = async () => 1;`);
    expect(stderr).toContain(
      `${name} is not part of this runtime, as it is of AWS Lambda's: add it to the dependencies in package.json`,
    );
  }
});

test("equal headers of a request are several values", async () => {
  const { url } = await startFunction(
    `exports.handler = async (e) => [e.multiValueHeaders["x-a"], e.headers["x-a"]];`,
  );
  const answer = await new Promise<string>((resolve) => {
    get(url, { headers: { "x-a": ["1", "2"] } }, (response) =>
      response.on("data", (chunk) => resolve(String(chunk))),
    );
  });
  expect(answer).toBe('[["1","2"],"1, 2"]');
});

describe("Lambda's stream", () => {
  test("comes piece by piece, and breaks off where it fails", async () => {
    const { url, stderr } = await startFunction(`let go;
      exports.handler = awslambda.streamifyResponse(async (event, responseStream) => {
        if (event.rawPath === "/go") { go(); return responseStream.end(); }
        responseStream.write("first");
        await new Promise((resolve) => { go = resolve; });
        throw new Error("half way"); });`);
    const [answer] = (await once(get(url), "response")) as [IncomingMessage];
    expect(String((await once(answer, "data"))[0])).toBe("first");
    const broken = once(answer, "error");
    await send(`${url}/go`);
    expect(await broken).toMatchObject([{ code: "ECONNRESET" }]);
    await expect.poll(stderr).toContain("Error: half way");
  });

  test("is found in the file that AWS Lambda's templates have, whatever their package.json says", async () => {
    const { url } = await startFunction({
      "app.mjs": `export const lambdaHandler = async () => ({ statusCode: 200, body: "hello" });`,
      "package.json": '{"main":"app.js"}',
    });
    expect((await send(url)).body).toBe("hello");
  });
});
