/** `main(args)`, as OpenWhisk's and DigitalOcean's documents write it. */
import { describe, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython } from "./testing.ts";

const echo = { "__main__.py": "", "main.py": "def main(args): return {'body': args}" };
const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "parameters of the query",
    files: {
      "main.py": `def main(args): return {"body": "Hello " + args.get("name", "stranger") + "!"}`,
    },
    target: "/?name=Ada",
    body: "Hello Ada!",
    headers: { "content-type": "text/html; charset=utf-8" },
  },
  {
    name: "a JSON body, which is stronger than the query",
    files: { "main.py": `def main(params): return {"body": params["a"] + params["b"]}` },
    target: "/?a=1&b=2",
    call: { method: "POST", headers: json, body: '{"a":"3"}' },
    body: "32",
  },
  {
    name: "a form",
    files: { "main.py": `def main(args): return {"body": args["name"]}` },
    call: {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "name=Grace+H",
    },
    body: "Grace H",
  },
  {
    name: "what is known of the request",
    files: echo,
    target: "/a/b?x=1",
    call: { method: "PUT", headers: { "content-type": "text/plain", "x-a": "1" }, body: "text" },
    body: /"x": ?"1", ?"__ow_body": ?"text", ?"__ow_method": ?"put".*"x-a": ?"1".*"__ow_path": ?"\/a\/b".*"method": ?"PUT"/,
  },
  {
    name: "status and headers",
    files: {
      "main.py": `def main(args): return {"statusCode": 302, "headers": {"location": "/there"}}`,
    },
    status: 302,
    body: "",
    headers: { location: "/there" },
  },
  {
    name: "an error",
    files: {
      "main.py": `def main(args): return {"error": {"statusCode": 403, "body": {"why": "no"}}}`,
    },
    status: 403,
    body: /\{"why": ?"no"\}/,
  },
  {
    name: "a plain dict",
    files: { "main.py": `def main(args): return {"greeting": "hello"}` },
    body: /\{"greeting": ?"hello"\}/,
  },
  {
    name: "one that is named",
    files: { "main.py": `def hello(params): return {"body": params["name"]}` },
    env: { HANDLER_FUNC_NAME: "hello" },
    target: "/?name=Ada",
    body: "Ada",
  },
  {
    name: "Kyma's main with one parameter, which is none of these",
    files: { "main.py": `def main(event): return event["data"]` },
    call: { method: "POST", headers: json, body: '{"a":1}' },
    body: /\{"a": ?1\}/,
  },
];

describe.skipIf(missingPython)("an action of OpenWhisk", () => {
  test.each(rows)("$name", expectAnswer);
});
