import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Clock, ManualClock } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../api-server.ts";

/** A clock that counts the ways to cancel a timer that are held by anything. */
function countingClock() {
  const manual = new ManualClock();
  const given: WeakRef<() => void>[] = [];
  const clock: Clock = {
    now: () => manual.now(),
    elapsed: () => manual.elapsed(),
    after(ms, callback) {
      const cancel = manual.after(ms, callback);
      given.push(new WeakRef(cancel));
      return cancel;
    },
  };
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const held = async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    gc();
    return given.filter((each) => each.deref()).length;
  };
  return { clock, advance: (ms: number) => manual.advance(ms), held };
}

test("a watch with bookmarks holds no more after many of them", async () => {
  const { clock, advance, held } = countingClock();
  const server = await createApiServer({ dataDir: ":memory:", clock });
  onTestFinished(() => server.close());
  const url = "http://x/api/v1/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=100000";
  const response = await server.transport()(new Request(url));
  const reader = response.body!.getReader();
  const before = await held();
  let bookmarks = 0;
  for (let minute = 0; minute < 50; minute++) {
    await advance(60_000);
    const { value } = await reader.read();
    bookmarks += String(Buffer.from(value ?? [])).split('"BOOKMARK"').length - 1;
  }
  expect(bookmarks).toBeGreaterThan(40);
  expect(await held()).toBeLessThanOrEqual(before + 1);
  await reader.cancel();
});
