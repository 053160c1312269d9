import { expect, test } from "vitest";
import { argvOf, expand, fieldValue, resourceValue } from "./environment.ts";

const place = {
  podIp: "127.1.0.1",
  hostIp: "127.0.0.1",
  nodeName: "n",
  allocatable: { cpu: 4, memory: 1024 },
};

test.each([
  { text: "$(A)-$(B)", value: "1-2" },
  { text: "$(MISSING)", value: "$(MISSING)" },
  { text: "$$(A)", value: "$(A)" },
  { text: "$A ${A} $", value: "$A ${A} $" },
])("$text becomes $value", ({ text, value }) => {
  expect(
    expand(
      text,
      new Map([
        ["A", "1"],
        ["B", "2"],
      ]),
    ),
  ).toBe(value);
});

test.each([
  { name: "the image's, when the Pod has none", container: {}, argv: ["node", "main.js"] },
  {
    name: "the Pod's arguments after the image's program",
    container: { args: ["--port", "$(PORT)"] },
    argv: ["node", "--port", "80"],
  },
  { name: "the Pod's command alone", container: { command: ["sh"] }, argv: ["sh"] },
])("the command is $name", ({ container, argv }) => {
  const image = { Entrypoint: ["node"], Cmd: ["main.js"] };
  expect(argvOf({ name: "c", ...container }, image, { PORT: "80" })).toEqual(argv);
});

test.each([
  { path: "metadata.labels['app']", value: "web" },
  { path: "metadata.annotations['none']", value: "" },
  { path: "status.podIP", value: "127.1.0.1" },
  { path: "spec.serviceAccountName", value: "default" },
])("$path is $value", ({ path, value }) => {
  expect(fieldValue({ metadata: { labels: { app: "web" } } }, path, place)).toBe(value);
});

test.each([
  { resource: "limits.cpu", value: "1" },
  { resource: "limits.cpu", divisor: "1m", value: "500" },
  { resource: "limits.memory", divisor: "1", value: "1024" },
  { resource: "requests.memory", divisor: "1", value: "0" },
])("$resource in units of $divisor is $value", ({ value, ...field }) => {
  const container = { name: "c", resources: { limits: { cpu: "500m" } } };
  const pod = { metadata: {}, spec: { containers: [container] } };
  expect(resourceValue(pod, container, field, place)).toBe(value);
});
