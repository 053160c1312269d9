import { expect, test } from "vitest";
import { functionNamed } from "./function-name.ts";
import { typedCommand } from "./other-names.ts";
import { createProgram } from "./program.ts";

test.each([
  ["hello", "hello"],
  ["function/hello", "hello"],
  ["functions/hello", "hello"],
  ["fn/hello", "hello"],
  ["Function/hello", "hello"],
  ["functions.serverless.kyma-project.io/hello", "hello"],
  ["function.serverless.kyma-project.io/hello", "hello"],
  ["functions.v1alpha2.serverless.kyma-project.io/hello", "hello"],
])("%s names %s", (text, name) => {
  expect(functionNamed(text)).toBe(name);
});

test.each(["pod/hello", "default/hello", "function/", "fn/a/b", "/hello"])(
  "%s names no Function",
  (text) => {
    expect(() => functionNamed(text)).toThrow(`${text} is not the name of a Function`);
  },
);

test.each([
  ["get function hello", "get hello"],
  ["-n shop get fn hello -o yaml", "-n shop get hello -o yaml"],
  ["delete functions a b --yes", "delete a b --yes"],
  ["describe function.serverless.kyma-project.io hello", "describe hello"],
  ["get function", "get function"],
  ["get function -o json", "get function -o json"],
  ["delete fn --yes", "delete fn --yes"],
  ["apply function", "apply"],
  ["apply function -f config.yaml", "apply -f config.yaml"],
  ["run function --port 3000", "run --port 3000"],
  ["sync function hello -d dir", "sync hello -d dir"],
  ["init function", "init --schema-version v0"],
  ["init function --runtime python312", "init --schema-version v0 --runtime python312"],
  ["init function --template hono", "init --template hono"],
  ["init ./function", "init ./function"],
  ["get schema serverless", "schema config.yaml"],
  ["get schema", "get schema"],
  ["function get", "get"],
  ["function get hello", "get hello"],
  ["function delete hello", "delete hello"],
  ["function init python", "function init python"],
  ["function create x", "function create x"],
  ["function create nodejs x -v 22", "function create nodejs x --node-version 22"],
  ["function create nodejs x --version=22", "function create nodejs x --node-version=22"],
  ["function create x -v --dry-run", "function create x -v --dry-run"],
  ["deploy function", "deploy function"],
  ["logs hello", "logs hello"],
  ["--help", "--help"],
])("%s means %s", (typed, meant) => {
  expect(typedCommand(typed.split(" "), createProgram()).join(" ")).toBe(meant);
});
