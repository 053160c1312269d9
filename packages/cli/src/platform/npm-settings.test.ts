import { expect, test } from "vitest";
import { npmrcOf } from "./npm-settings.ts";

test("the way to the registry is carried over, credentials and everything else are not", () => {
  const all = {
    registry: "https://mirror.example/",
    "@acme:registry": "https://acme.example/",
    cafile: "/etc/ca.pem",
    ca: ["-----BEGIN\nA", "-----BEGIN\nB"],
    proxy: "http://me:se@cret@proxy.example:3128/",
    "https-proxy": "me:secret@proxy.example:3128",
    noproxy: ".example,10.0.0.0/8",
    "@own:registry": "https://token@own.example/@own/",
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
    "proxy=http://proxy.example:3128/",
    "https-proxy=proxy.example:3128",
    "noproxy=.example,10.0.0.0/8",
    "@own:registry=https://own.example/@own/",
    "strict-ssl=true",
  ]);
});
