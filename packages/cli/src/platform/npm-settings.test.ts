import { expect, test } from "vitest";
import { npmrcOf } from "./npm-settings.ts";

test("the way to the registry is carried over, credentials and everything else are not", () => {
  const all = {
    registry: "https://mirror.example/",
    "@acme:registry": "https://acme.example/",
    cafile: "/etc/ca.pem",
    ca: ["-----BEGIN\nA", "-----BEGIN\nB"],
    proxy: null,
    "strict-ssl": true,
    "//mirror.example/:_authToken": "secret",
    _auth: "secret",
    prefix: "/usr",
  };
  expect(npmrcOf(all).trimEnd().split("\n")).toEqual([
    "registry=https://mirror.example/",
    "@acme:registry=https://acme.example/",
    "cafile=/etc/ca.pem",
    "ca[]=-----BEGIN\\nA",
    "ca[]=-----BEGIN\\nB",
    "strict-ssl=true",
  ]);
});
