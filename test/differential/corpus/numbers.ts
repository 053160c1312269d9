/** Numbers, and texts that are hard to keep: bodies are sent as they are written here, for `JSON.stringify` would change them. */
import { type Case, type Step, at, get, table, watch } from "../step.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const group = "numbers.spry.invalid";
const numbers = at(`${group}/v1`, "numbers");
const big = "9007199254740993";

const schema = `{"type":"object","properties":{
  "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
  "preset":{"type":"integer","default":${big}},
  "spec":{"type":"object","properties":{
    "whole":{"type":"integer"},"long":{"type":"integer","format":"int64"},"short":{"type":"integer","format":"int32"},
    "number":{"type":"number"},"either":{"x-kubernetes-int-or-string":true},"replicas":{"type":"integer"},
    "bounded":{"type":"integer","minimum":-${big},"maximum":${big}},"multiple":{"type":"integer","multipleOf":3},
    "chosen":{"type":"integer","enum":[${big},5]},
    "ruled":{"type":"integer","x-kubernetes-validations":[
      {"rule":"self != 9007199254740995","message":"not this one"},{"rule":"oldSelf < self","message":"only more"}]},
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}}}}}`;
const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"numbers.${group}"},
  "spec":{"group":"${group}","scope":"Namespaced","names":{"plural":"numbers","kind":"Number"},"versions":[{"name":"v1","served":true,
  "storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
  "additionalPrinterColumns":[{"name":"Whole","type":"integer","jsonPath":".spec.whole"},
    {"name":"Number","type":"number","jsonPath":".spec.number"},{"name":"Text","type":"string","jsonPath":".any.a"}],
  "schema":{"openAPIV3Schema":${schema}}}]}}`;
const number = (name: string, rest: string) =>
  `{"apiVersion":"${group}/v1","kind":"Number","metadata":{"name":"${name}"},${rest}}`;

const sent = (
  method: string,
  path: string,
  body: string,
  contentType = "application/json",
): Step => ({ method, path, body, headers: { "content-type": contentType } });
const created = (name: string, rest: string) => sent("POST", numbers, number(name, rest));
const inYaml = (name: string, value: string) =>
  sent(
    "POST",
    numbers,
    `apiVersion: ${group}/v1\nkind: Number\nmetadata: {name: ${name}}\nany: {a: ${value}}\n`,
    "application/yaml",
  );
const merged = (name: string, body: string) =>
  sent("PATCH", `${numbers}/${name}`, body, "application/merge-patch+json");
const operated = (name: string, body: string) =>
  sent("PATCH", `${numbers}/${name}`, body, "application/json-patch+json");
const applied = (manager: string, body: string) =>
  sent("PATCH", `${numbers}/a?fieldManager=${manager}`, body, "application/apply-patch+yaml");

const literals = [
  big,
  `-${big}`,
  "9223372036854775807",
  "-9223372036854775808",
  "9223372036854775808",
  "12345678901234567890",
  "123456789012345678901234567890",
  "1.0",
  "1.10",
  "1e3",
  "1E3",
  "1e20",
  "1e21",
  "1e-7",
  "0.000001",
  "1.5e300",
  "-0",
  "-0.0",
  "1e-400",
  `${big}.0`,
  "9.007199254740993e15",
  "0.1234567890123456789",
  "1e400",
  "-1e400",
];
const yamlScalars = [
  "0x1F",
  "0o17",
  "017",
  "0b11",
  "1_000",
  ".5",
  "+5",
  "5.",
  "-.5",
  "09",
  "12e03",
  "1:30",
  "~",
  "yes",
  "on",
  "No",
  "y",
  "OFF",
  "2001-01-01",
  ".inf",
  ".nan",
  "'yes'",
  "1e400",
  "0x20000000000001",
  "0x8000000000000000",
  `+${big}`,
];
const fields = ["any", "whole", "long", "short", "number", "either"];
const field = (name: string, value: string) =>
  name === "any" ? `"any":{"a":${value}}` : `"spec":{"${name}":${value}}`;

const job = (name: string, value: string) =>
  `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"${name}"},"spec":{"activeDeadlineSeconds":${value},"suspend":true,` +
  `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`;
const jobs = at("batch/v1", "jobs");
const text = (name: string, value: string) =>
  sent(
    "POST",
    at("v1", "configmaps"),
    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},"data":{"a":"${value}"}}`,
  );

export const numberCases: Case[] = [
  {
    name: "numbers: CustomResourceDefinition",
    steps: [
      sent("POST", definitions, definition),
      { ...get(numbers), until: 200 },
      ...fields.flatMap((name) =>
        literals.map((value, index) => created(`${name}-${index}`, field(name, value))),
      ),
      ...literals.map((value, index) => inYaml(`yaml-${index}`, value)),
      ...yamlScalars.map((value, index) => inYaml(`scalar-${index}`, value)),
      created(
        "a",
        `"spec":{"whole":${big},"number":5},"any":{"a":-${big},"l":[1,${big},"${big}"]}`,
      ),
      created("b", `"spec":{"set":[${big},${big}]}`),
      ...[big, "9007199254740992", `-${big}`, "9223372036854775807"].map((value, index) =>
        created(`bounded-${index}`, field("bounded", value)),
      ),
      created("multiple", field("multiple", big)),
      created("no-multiple", field("multiple", "9007199254740994")),
      created("chosen", field("chosen", big)),
      created("not-chosen", field("chosen", "9007199254740992")),
      created("replicas", field("replicas", big)),
      created("ruled-out", field("ruled", "9007199254740995")),
      created("ruled", field("ruled", big)),
      merged("ruled", `{"spec":{"ruled":9007199254740992}}`),
      merged("ruled", `{"spec":{"ruled":9007199254740994}}`),
      merged("a", `{"metadata":{"labels":{"x":"y"}}}`),
      merged("a", `{"any":{"b":9007199254740995,"c":12345678901234567890}}`),
      merged("a", `{"any":{"b":9007199254740995}}`),
      merged("a", `{"any":{"b":1e400}}`),
      operated(
        "a",
        `[{"op":"test","path":"/spec/whole","value":${big}},{"op":"copy","from":"/any/b","path":"/any/d"}]`,
      ),
      operated("a", `[{"op":"test","path":"/spec/whole","value":9007199254740992}]`),
      applied("one", number("a", `"spec":{"whole":${big}},"any":{"z":9007199254740999}`)),
      applied("two", number("a", `"any":{"z":9007199254740998}`)),
      applied("two", number("a", `"any":{"z":9007199254740999}`)),
      get(`${numbers}/a`),
      get(`${numbers}/a`, { accept: "application/yaml" }),
      table(`${numbers}/a`),
      watch(`${numbers}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Da`, 1),
    ],
  },
  {
    name: "numbers in a Job",
    steps: [
      ...[big, "9223372036854775807", "0", "1.5", "-1"].map((value, index) =>
        sent("POST", jobs, job(`j${index}`, value)),
      ),
      ...["merge-patch", "strategic-merge-patch"].flatMap((type) =>
        [big, "1.5", "9007199254740992", "1e400"].map((value) =>
          sent(
            "PATCH",
            `${jobs}/j2`,
            `{"spec":{"activeDeadlineSeconds":${value}}}`,
            `application/${type}+json`,
          ),
        ),
      ),
      sent("PATCH", `${jobs}/j2?fieldManager=m`, job("j2", big), "application/apply-patch+yaml"),
      get(`${jobs}/j0`, { accept: "application/yaml" }),
    ],
  },
  {
    name: "texts that hold half a character",
    steps: [
      text("a", String.raw`x\ud800y`),
      text("b", String.raw`\udc00\ud800`),
      text("c", String.raw`\ud83d\ude00`),
      text("d", String.raw`\u0000\u001f\u2028\u007f<>&`),
    ],
  },
];
