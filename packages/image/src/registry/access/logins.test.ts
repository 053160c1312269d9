import { expect, test } from "vitest";
import { createLogins } from "./logins.ts";

const logins = createLogins("k".repeat(64));
const build = {
  namespace: "shop",
  uid: "1",
  function: "hello",
  job: { name: "hello-build-1", uid: "2" },
  expiresAt: 5,
};

test("a login is good for what it was made for, and is the same every time", () => {
  expect(logins.grantOf(logins.platform())).toEqual({ for: "platform" });
  expect(logins.grantOf(logins.node())).toEqual({ for: "node" });
  const namespace = logins.namespace({ namespace: "shop", uid: "1" });
  expect(namespace).toEqual(logins.namespace({ namespace: "shop", uid: "1" }));
  expect(logins.grantOf(namespace)).toEqual({ for: "namespace", namespace: "shop", uid: "1" });
  expect(logins.grantOf(logins.build(build))).toEqual({ for: "build", ...build });
});

test("longest names fit", () => {
  const name = "n".repeat(63);
  const job = { name, uid: "u".repeat(36) };
  const long = { ...build, namespace: name, function: name, job, base: "b".repeat(255) };
  expect(logins.grantOf(logins.build(long))).toBeDefined();
});

const { username, password } = logins.namespace({ namespace: "shop", uid: "1" });
const [version, payload, signature] = password.split(".");
const claims = (grant: object) => Buffer.from(JSON.stringify(grant)).toString("base64url");
test.each([
  ["another key", createLogins("j".repeat(64)).platform()],
  ["another's name", { username: "platform", password }],
  ["no password", { username, password: "" }],
  ["no signature", { username, password: `${version}.${payload}.` }],
  ["a cut signature", { username, password: password.slice(0, -4) }],
  [
    "another payload",
    { username: "platform", password: `${version}.${claims({ for: "platform" })}.${signature}` },
  ],
  ["another version", { username, password: password.replace("spry1", "spry2") }],
  ["more than was signed", { username, password: `${version}.${payload}.x.${signature}` }],
  ["an old login's form", { username: "0123456789abcdef0123", password: "a".repeat(40) }],
  ["a very long one", { username, password: `spry1.${"a".repeat(100_000)}.${signature}` }],
])("is not taken with %s", (_why, login) => {
  expect(logins.grantOf(login)).toBeUndefined();
});

test("a short key is refused", () => {
  expect(() => createLogins("short")).toThrow("too short");
});
