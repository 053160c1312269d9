import { describe, expect, test } from "vitest";
import {
  broughtPackages,
  buildKey,
  type Declaring,
  type Function,
  undeclaredOf,
  undeclaredPackages,
} from "./index.ts";

const given = (source: string, dependencies = "", runtime = "nodejs24"): Function => ({
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: { name: "hello" },
  spec: { runtime, source: { inline: { source, dependencies } } },
});

describe("what a text uses", () => {
  test.each([
    [`const axios = require("axios");`, ["axios"]],
    [`require( 'axios' ).get()`, ["axios"]],
    [`import axios from "axios";`, ["axios"]],
    [`import axios, {\n  AxiosError,\n} from 'axios'`, ["axios"]],
    [`import"axios";`, ["axios"]],
    [`const { default: a } = await import("axios")`, ["axios"]],
    [`export * from "cloudevents";`, ["cloudevents"]],
    [`require("axios/lib/core/settle.js"); require("mz/fs")`, ["axios", "mz"]],
    [
      `import { trace } from "@opentelemetry/api";\nrequire('express')`,
      ["@opentelemetry/api", "express"],
    ],
    [`require("axios"); require("axios")`, ["axios"]],
    ["require(`axios`)", []],
    [`require("axios')`, []],
    [`require("axios-retry"); require("./axios"); require("@my/axios"); require("node:co")`, []],
    [`const text = "axios"; fetch("express")`, []],
    [`require("constructor"); require("__proto__")`, []],
    ["", []],
  ])("%s", (text, names) => expect(undeclaredPackages(text, () => [])).toEqual(names));

  test("every package of the table, by its whole name", () => {
    for (const name of Object.keys(broughtPackages))
      expect(undeclaredPackages(`import "${name}"`, () => [])).toEqual([name]);
  });

  test.each([
    ["blanks", `import${" ".repeat(1_000_000)}x`],
    ["blanks behind a bracket", `import(${" ".repeat(1_000_000)}x`],
    ["beginnings", "import ".repeat(150_000)],
    ["paths without an end", `import'co/`.repeat(100_000)],
    ["quotes of the other kind", `import'co/"`.repeat(100_000)],
  ])("is found in one pass over many %s", (_, text) => {
    expect(undeclaredPackages(text, () => []).length).toBeLessThan(2);
  });
});

describe("is declared", () => {
  const axios = { axios: "1" };
  test.each<[string, Declaring, boolean]>([
    ["nowhere", {}, false],
    ["among the dependencies", { dependencies: axios }, true],
    ["among the optional ones", { optionalDependencies: axios }, true],
    ["among the peers", { peerDependencies: axios }, true],
    ["for development, which nothing uses", { devDependencies: axios }, false],
    ["for the build script", { devDependencies: axios, scripts: { build: "tsc" } }, true],
    ["in a field that is none", { dependencies: "axios" }, false],
  ])("%s", (_, manifest, isDeclared) =>
    expect(undeclaredPackages(`require("axios")`, () => [{}, manifest])).toEqual(
      isDeclared ? [] : ["axios"],
    ),
  );
});

test.each([
  ["without dependencies", given(`require("axios")`), ["axios"]],
  ["that declares it", given(`require("axios")`, `{"dependencies":{"axios":"0.26.1"}}`), []],
  ["with a package.json that is none", given(`require("axios")`, "{"), ["axios"]],
  ["with one that is null", given(`require("axios")`, "null"), ["axios"]],
  ["in Python", given(`import "axios"`, "", "python312"), []],
])("of an inline Function %s", (_, fn, names) => expect(undeclaredOf(fn)).toEqual(names));

test("the key of a build has the versions that are added, and of all other Functions what it had", () => {
  const key = (source: string) => buildKey(given(source));
  // Of a release that added nothing: an upgrade builds nothing anew.
  expect(key("code")).toBe("4e8652803cc35258574d2c3dfe604decfcabc8523fd67a2e01737e391a84096a");
  const before = key(`require("axios")`);
  const table = broughtPackages as Record<string, string>;
  const range = table["axios"]!;
  try {
    table["axios"] = "^2.0.0";
    expect(key(`require("axios")`)).not.toBe(before);
  } finally {
    table["axios"] = range;
  }
});
