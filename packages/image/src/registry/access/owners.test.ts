import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing/registry.ts";
import { digest } from "../../testing/registry-requests.ts";
import { NamespaceUses } from "../namespace-uses.ts";
import { RepositoryStore } from "../repository-store.ts";
import { Owners } from "./owners.ts";

function startOwners() {
  const dir = temporaryDirectory();
  const clock = { now: () => Date.now(), elapsed: () => performance.now() };
  const repositories = new RepositoryStore(dir, dir, clock);
  return { owners: new Owners(dir, dir, repositories, new NamespaceUses()), repositories };
}

test("a write that a slow disk holds up is not left to the namespace's next owner", async () => {
  const { owners, repositories } = startOwners();
  expect(await owners.claim("shop", "1", undefined)).toBe(true);
  let continues = () => {};
  const disk = new Promise<void>((resolve) => (continues = resolve));
  const write = owners.change("shop", async (owner) => {
    await disk;
    repositories.addBlob("shop/fn", digest);
    return owner;
  });
  const claim = owners.claim("shop", "2", "1");
  const after = owners.change("shop", (owner) => ({ owner, all: repositories.list() }));
  continues();
  expect(await write).toBe("1");
  expect(await claim).toBe(true);
  expect(await after).toEqual({ owner: "2", all: [] });
  expect(repositories.list()).toEqual([]);
});

test("a write that fails does not block others", async () => {
  const { owners } = startOwners();
  const failing = owners.change("shop", () => Promise.reject(new Error("full")));
  await expect(failing).rejects.toThrow("full");
  expect(await owners.claim("shop", "1", undefined)).toBe(true);
});
