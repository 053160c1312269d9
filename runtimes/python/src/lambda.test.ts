/** Handlers in the style of AWS Lambda, as its documents write them. */
import { describe, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython } from "./testing.ts";

const lambda = `
import json
def lambda_handler(event, context):
    if event["rawPath"] == "/plain":
        return {"left": context.get_remaining_time_in_millis() > 1000}
    if event["rawPath"] == "/binary":
        return {"statusCode": 200, "headers": {"content-type": "image/png"}, "body": "AAE=", "isBase64Encoded": True}
    return {
        "statusCode": 201, "headers": {"X-A": "1"}, "cookies": ["a=1", "b=2"],
        "body": json.dumps([event["version"], event["requestContext"]["http"]["method"], event.get("queryStringParameters"),
                            event.get("cookies"), event.get("body"), event["isBase64Encoded"], context.function_name]),
    }
`;

const rows: Row[] = [
  {
    name: "Lambda with a status",
    files: { "lambda_function.py": lambda },
    target: "/a?x=1&x=2",
    call: {
      method: "POST",
      headers: { cookie: "c=3; d=4", "content-type": "text/plain" },
      body: "hi",
    },
    status: 201,
    body: '["2.0", "POST", {"x": "1,2"}, ["c=3", "d=4"], "hi", false, "hello"]',
    headers: { "x-a": "1", "set-cookie": ["a=1", "b=2"], "content-type": "application/json" },
  },
  {
    name: "Lambda with bytes",
    files: { "handler.py": lambda.replace("lambda_handler", "handler") },
    call: { method: "PUT", headers: { "content-type": "image/png" }, body: "\u0001" },
    status: 201,
    body: '["2.0", "PUT", null, null, "AQ==", true, "hello"]',
  },
  {
    name: "Lambda without a status",
    files: { "lambda_function.py": lambda },
    target: "/plain",
    body: '{"left": true}',
  },
  {
    name: "Lambda that answers bytes",
    files: { "lambda_function.py": lambda },
    target: "/binary",
    body: "\0\u0001",
    headers: { "content-type": "image/png" },
  },
  {
    name: "Lambda in async def, which AWS answers with an error, with one loop for all calls",
    files: {
      "lambda_function.py": `
import asyncio
queue = asyncio.Queue()
async def lambda_handler(event, context):
    await queue.put(event["rawPath"])
    await asyncio.sleep(0.001)
    return {"statusCode": 200, "body": await queue.get()}
`,
    },
    target: "/a",
    body: "/a",
  },
  {
    name: "Lambda's region, which boto3 reads under another name",
    files: {
      "lambda_function.py":
        "import os\nREGION = os.environ['AWS_DEFAULT_REGION']\ndef lambda_handler(event, context): return {'statusCode': 200, 'body': REGION}",
    },
    env: { AWS_REGION: "eu-central-1" },
    body: "eu-central-1",
  },
  {
    name: "Lambda that returns what is to be awaited, with threads",
    files: {
      "lambda_function.py": `
import asyncio
def lambda_handler(event, context):
    return asyncio.sleep(0.001, {"statusCode": 201, "body": "later"})
`,
    },
    env: { SERVER_NUMTHREADS: "5" },
    status: 201,
    body: "later",
  },
  {
    name: "Lambda for a REST API, whose events are of format 1.0",
    files: {
      "handler.py": `
import json
def handler(event, context):
    got = event["requestContext"]
    return {"statusCode": 200, "body": json.dumps([event["httpMethod"], event["path"], event["pathParameters"]["proxy"], event["multiValueQueryStringParameters"],
        event["multiValueHeaders"]["x-b"], event["headers"]["X-B"], event["headers"].get("X-B"), "X-B" in event["headers"], got["httpMethod"], got["path"], got["identity"]["sourceIp"], got["requestTimeEpoch"] > 0])}`,
    },
    target: "/a/b?x=1&x=2",
    call: { method: "DELETE", headers: { "x-b": "c" } },
    body: '["DELETE", "/a/b", "a/b", {"x": ["1", "2"]}, ["c"], "c", "c", true, "DELETE", "/a/b", "127.0.0.1", true]',
  },
  {
    name: "Lambda by its dialect, before an application",
    files: {
      "handler.py": `
app = lambda environ, start_response: start_response("500 no", []) or []
def handler(event, context): return {"statusCode": 200, "body": "lambda"}`,
    },
    env: { HANDLER_DIALECT: "lambda" },
    body: "lambda",
  },
  {
    name: "Lambda's environment, and the time in its format",
    files: {
      "lambda_function.py": `
import os, re
loaded = os.environ["AWS_LAMBDA_FUNCTION_NAME"], os.environ["_HANDLER"], os.environ["LAMBDA_TASK_ROOT"] == os.path.dirname(os.path.realpath(__file__)), "AWS_REGION" in os.environ
def lambda_handler(event, context):
    got = event["requestContext"]
    times = [bool(re.fullmatch(r"\\d\\d/[A-Z][a-z]{2}/\\d{4}:\\d\\d:\\d\\d:\\d\\d \\+0000", each)) for each in (got["time"], got["requestTime"])]
    return {"statusCode": 200, "body": repr([*loaded, *times, context.memory_limit_in_mb])}`,
    },
    env: { FUNC_MEMORY_LIMIT: String(256 * 2 ** 20) },
    body: "['hello', 'lambda_function.lambda_handler', True, False, True, True, '256']",
  },
  {
    name: "Lambda's environment that the user has set",
    files: {
      "app.py": `
import os
def handler(event, context): return {"statusCode": 200, "body": repr([os.environ[name] for name in ("AWS_REGION", "_HANDLER", "AWS_LAMBDA_FUNCTION_NAME")])}`,
    },
    env: { AWS_REGION: "eu-west-1", _HANDLER: "mine" },
    body: "['eu-west-1', 'mine', 'hello']",
  },
  {
    name: "Lambda without a body and a query, for events of either format",
    files: {
      "app.py": `
def handler(event, context):
    return {"statusCode": 200, "body": repr([event["body"], event["queryStringParameters"], event.get("queryStringParameters", {}), "body" in event])}`,
    },
    body: "[None, None, {}, False]",
  },
  {
    name: "Lambda with a form, as HTTP APIs send it",
    files: {
      "app.py": `
def handler(event, context): return {"statusCode": 200, "body": repr([event["body"], event["isBase64Encoded"]])}`,
    },
    call: {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "a=1",
    },
    body: "['YT0x', True]",
  },
  {
    name: "Lambda in the file that its templates have",
    files: {
      "app.py": `def lambda_handler(event, context): return {"statusCode": 200, "body": event["rawPath"]}`,
    },
    target: "/a",
    body: "/a",
  },
  {
    name: "Lambda, told by the name that its templates have",
    files: {
      "app.py": `def lambda_handler(event, context): return {"statusCode": 202, "body": event["version"]}`,
    },
    env: { HANDLER_MOD_NAME: "app", HANDLER_FUNC_NAME: "lambda_handler" },
    status: 202,
    body: "2.0",
  },
  ...(["hello", "main"] as const).map((name) => ({
    name: `Lambda, of the dialect, called ${name}`,
    files: {
      "handler.py": `def ${name}(event, context): return {"statusCode": 202, "body": event["version"]}`,
    },
    env: { HANDLER_DIALECT: "lambda", HANDLER_FUNC_NAME: name },
    status: 202,
    body: "2.0",
  })),
];

describe.skipIf(missingPython)("a handler of AWS Lambda", () => {
  test.each(rows)("$name", expectAnswer);
});
