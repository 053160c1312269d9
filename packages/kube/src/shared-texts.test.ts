import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { type ConfigMap } from "./resources.ts";
import { SharedObject } from "./shared-objects.ts";
import { offerText } from "./shared-texts.ts";

async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  // What a turn has looked at through a weak reference stays until its end.
  await setImmediate();
  (runInNewContext("gc") as () => void)();
}

/** Counts how often its text is read. */
class Holder {
  reads = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get json(): string {
    this.reads++;
    return this.#text;
  }
}

/** Nothing of the caller's holds the parsed form. */
function resting(uid: string, value: string): SharedObject<ConfigMap> {
  const shared = new SharedObject<ConfigMap>({ metadata: { name: "a", uid }, data: { value } });
  shared.rest();
  return shared;
}

const textOf = (uid: string, value: string) =>
  JSON.stringify({
    metadata: { name: "a", uid, managedFields: [{ manager: "somebody" }] },
    data: { value },
  });

test("a text that the server holds anyway is not kept twice", async () => {
  const holder = new Holder(textOf("1", "same"));
  offerText("1", holder);
  const shared = resting("1", "same");
  await collectGarbage();
  const before = holder.reads;
  expect(shared.object).toEqual({ metadata: { name: "a", uid: "1" }, data: { value: "same" } });
  expect(holder.reads).toBe(before + 1);
});

test("a text that says anything else is not taken for it", async () => {
  const holder = new Holder(textOf("2", "other"));
  offerText("2", holder);
  const shared = resting("2", "own");
  await collectGarbage();
  const before = holder.reads;
  expect(shared.object.data).toEqual({ value: "own" });
  expect(holder.reads).toBe(before);
});
