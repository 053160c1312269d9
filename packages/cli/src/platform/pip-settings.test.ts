import { expect, test } from "vitest";
import { pipConfOf } from "./pip-settings.ts";

const lines = (text: string) => text.trimEnd().split("\n");

test("the way to the index is carried over, credentials and everything else are not", () => {
  const system = "[global]\nindex-url = https://old.example/simple\ntrusted_host: old.example\n";
  const own = [
    "# mine",
    "[global]",
    "index-url = https://user:secret@mirror.example/simple",
    "extra-index-url =",
    "    https://a.example/simple",
    "    https://token@b.example/simple",
    "user = true",
    "[freeze]",
    "timeout = 1",
    "[install]",
    "find-links = /wheels",
  ].join("\n");
  expect(lines(pipConfOf([system, own], {}))).toEqual([
    "[global]",
    "index-url = https://mirror.example/simple",
    "trusted-host = old.example",
    "extra-index-url = https://a.example/simple",
    "    https://b.example/simple",
    "find-links = /wheels",
  ]);
});

test("variables win over files, and what all programs heed comes last", () => {
  const env = {
    PIP_INDEX_URL: "https://env.example/simple",
    PIP_DEFAULT_TIMEOUT: "180",
    PIP_REQUIRE_VIRTUALENV: "1",
    REQUESTS_CA_BUNDLE: "/etc/bundle.pem",
    HTTPS_PROXY: "http://me:secret@proxy.example:3128",
  };
  const file = "[global]\nindex-url = https://file.example/simple\ncert = /etc/own.pem\n";
  expect(lines(pipConfOf([file], env))).toEqual([
    "[global]",
    "index-url = https://env.example/simple",
    "cert = /etc/own.pem",
    "proxy = http://proxy.example:3128",
    "timeout = 180",
  ]);
});

test("nothing set is an empty section", () => {
  expect(pipConfOf([], {})).toBe("[global]\n\n");
});
