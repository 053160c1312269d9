/** Which of an operator's variables give way to files. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing/registry.ts";
import { settledByFiles } from "./operator-settings.ts";

const environment = {
  PATH: "/usr/bin",
  PIP_INDEX_URL: "http://mirror/simple",
  PIP_TRUSTED_HOST: "mirror",
  npm_config_registry: "http://mirror/",
  NPM_CONFIG_STRICT_SSL: "false",
};

test.each([
  ["pip.conf", "PIP_", "[global]\nindex-url = https://me:s3cret@index/simple\n", ["PIP_INDEX_URL"]],
  ["pip.conf", "PIP_", "[install]\n  Index_URL: https://index/simple\n", ["PIP_INDEX_URL"]],
  ["pip.conf", "PIP_", "[global]\n# index-url = none\ntimeout = 5\n", []],
  [".npmrc", "npm_config_", "registry=https://index/\n", ["npm_config_registry"]],
  [".npmrc", "npm_config_", "strict-ssl = true", ["NPM_CONFIG_STRICT_SSL"]],
  [".npmrc", "npm_config_", "@team:registry=https://index/\n//index/:_authToken=x\n", []],
])("%s of %s: %j", (name, prefix, content, settled) => {
  const file = join(temporaryDirectory(), name);
  writeFileSync(file, content);
  const expected = Object.fromEntries(settled.map((each) => [each, undefined]));
  expect(settledByFiles([undefined, file, `${file}-absent`], prefix, environment)).toEqual(
    expected,
  );
  expect(Object.keys(settledByFiles([file], prefix, environment))).toEqual(settled);
});
