/** Images whose files keep their owners and modes, on a machine that changes its sandbox. */
import { randomBytes } from "node:crypto";
import { chmodSync, statSync } from "node:fs";
import path from "node:path";
import { ManualClock, silentLogger } from "@spry/kube";
import { expect, test } from "vitest";
import { startRegistry, temporaryDirectory } from "../testing.ts";
import { ImageStore } from "./images.ts";

const someone = { namespaceUid: "someone" };

test("what an image lets its users write is not there for Pods that run images where they are", async () => {
  const registry = await startRegistry();
  const { mirrors } = registry;
  const options = { dir: temporaryDirectory(), mirrors, clock: new ManualClock() };
  const open = async (keepsOwners: boolean) => {
    const store = new ImageStore({
      ...options,
      keepsOwners: () => keepsOwners,
      log: silentLogger,
    });
    await store.open();
    return store;
  };
  const name = await registry.push("app:1", [
    { "app/node_modules/big/data": randomBytes(400_000).toString("base64") },
    { "app/main.cjs": "1" },
  ]);
  const shared = "app/node_modules/big/data";
  const { rootDir } = await (await open(true)).pull(name, someone);
  // As the layers of an image may have it.
  for (const file of ["app/main.cjs", shared]) chmodSync(path.join(rootDir, file), 0o666);
  expect((await open(true)).find(name)).toBeDefined();

  const store = await open(false);
  expect(store.find(name)).toBeUndefined();
  const again = await store.pull(name, someone);
  for (const file of ["app/main.cjs", shared])
    expect(statSync(path.join(again.rootDir, file)).mode & 0o777).toBe(0o644);
  // What has no owners of its own can be used by either.
  expect((await open(true)).find(name)).toBeDefined();
});
