import { RegistryError } from "@spry/image";
import { expect, test } from "vitest";
import { pullFailure } from "./pull-failure.ts";

const name = { host: "r.example:5000", repository: "a" };
const limit = new Error("more than 1000000 entries");

test.each([
  ["a limit", limit, "r.example:5000/a: the image has more than 1000000 entries"],
  ["a limit behind an entry's name", new Error('entry "secret"', { cause: limit }), "r.example:5000/a: the image has more than 1000000 entries"],
  ["too many layers", new Error("the image has 900 layers, more than the 500 taken"), "r.example:5000/a: the image has 900 layers, more than the 500 taken"],
  ["an entry's name", new Error('entry "secret"'), "r.example:5000/a: what the registry has sent is not a valid image, or is incomplete"],
  ["a text that looks like a limit", new Error("more than 5 bytes of secret"), "r.example:5000/a: what the registry has sent is not a valid image, or is incomplete"],
  ["a full disk", Object.assign(new Error("ENOSPC: no space left on device, open '/data/secret'"), { code: "ENOSPC" }), "r.example:5000/a: storing the image failed: ENOSPC"],
  ["a code that is not the system's", Object.assign(new Error("x"), { code: "secret" }), "r.example:5000/a: what the registry has sent is not a valid image, or is incomplete"],
  ["a registry that is away", new RegistryError("GET", { status: 0, host: "r.example:5000", cause: { code: "ECONNREFUSED" } }), "r.example:5000/a: the registry could not be reached: connection refused"],
  ["another server that is away", new RegistryError("GET", { status: 0, host: "secret:22", cause: { code: "ECONNREFUSED" } }), "r.example:5000/a: a server to which the registry leads could not be reached"],
  ["a registry's own code", new RegistryError("GET", { status: 403, host: "r.example:5000", code: "SECRET" }), "r.example:5000/a: the registry answered 403"],
  ["nothing at all", undefined, "r.example:5000/a: what the registry has sent is not a valid image, or is incomplete"],
])("of a failed pull, what may be shown: %s", (_, error, message) => {
  expect(pullFailure(name, error).message).toBe(message);
}); // prettier-ignore
