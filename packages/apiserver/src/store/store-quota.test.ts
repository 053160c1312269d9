import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeClient, resources, type StatusError } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../index.ts";

const dir = mkdtempSync(path.join(tmpdir(), "spry-store-quota-"));
/** The limits are small, and larger than what a server has from its beginning. */
const unit = 5 * 1024;
const perNamespace = 100 * unit;
let server: ApiServer;
/** A tenant: all rights, but no part of the platform. */
let tenant: KubeClient;
let platform: KubeClient;

async function start(options: Partial<ApiServerOptions> = {}): Promise<void> {
  server = await createApiServer({
    dataDir: dir,
    storeQuota: { total: 4096 * unit, perNamespace },
    ...options,
  });
  tenant = new KubeClient(server.transport({ name: "alice", groups: ["system:masters"] }));
  platform = new KubeClient(server.transport());
  for (const name of ["a", "b"])
    await platform.create(resources.namespaces, { metadata: { name } }).catch(() => undefined);
}

beforeEach(() => start());
afterEach(async () => {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

const configMap = (name: string, length: number, namespace = "a", letter = "x") => ({
  metadata: { namespace, name },
  data: { text: letter.repeat(length) },
});
const create = (name: string, length: number, namespace = "a", letter = "x") =>
  tenant.create(resources.configMaps, configMap(name, length, namespace, letter));

/** Creates until the namespace has no room for another one; the refusal. */
async function fill(namespace = "a", client = tenant, prefix = "fill"): Promise<StatusError> {
  for (let index = 0; ; index++) {
    const object = configMap(`${prefix}-${index}`, 10 * unit, namespace);
    try {
      await client.create(resources.configMaps, object);
    } catch (error) {
      return error as StatusError;
    }
  }
}

/** Until nothing is left at all. */
async function fillUp(namespace: string): Promise<void> {
  let index = 0;
  for (const length of [8 * unit, unit, 500, 50, 5, 1]) {
    const isMade = () =>
      create(`rest-${index++}`, length, namespace).then(
        () => true,
        () => false,
      );
    while (await isMade()) continue;
  }
}

test("a full namespace gets 403 with the numbers, and others go on", async () => {
  const refusal = await fill();
  expect(refusal.code).toBe(403);
  expect(refusal.message).toMatch(
    /^configmaps "fill-\d+" is forbidden: exceeded the limit of stored bytes of namespace a: used \d+, requested \d+ more, limited to 512000: delete objects, or/,
  );
  await expect(create("one", 10 * unit, "b")).resolves.toBeDefined();
});

test("a character beyond Latin-1 makes a text twice as large", async () => {
  await expect(create("plain", 60 * unit)).resolves.toBeDefined();
  await expect(create("wide", 60 * unit, "b", "ё")).rejects.toThrow("limited to 512000");
});

describe("in a full namespace", () => {
  beforeEach(async () => {
    await fill();
    await fillUp("a");
  });

  test("objects can be deleted, and there is room again", async () => {
    await tenant.delete(resources.configMaps, { namespace: "a", name: "fill-0" });
    await expect(create("again", 9 * unit)).resolves.toBeDefined();
  });

  test("the whole collection can be deleted", async () => {
    const url = "/api/v1/namespaces/a/configmaps";
    expect((await tenant.raw("DELETE", url)).ok).toBe(true);
    await expect(create("again", 60 * unit)).resolves.toBeDefined();
  });

  test("an object can be made smaller, and not larger", async () => {
    const place = { namespace: "a", name: "fill-0" };
    const text = (length: number) => ({ data: { text: "y".repeat(length) } });
    await expect(tenant.patch(resources.configMaps, place, text(11 * unit))).rejects.toMatchObject({
      code: 403,
    });
    await tenant.patch(resources.configMaps, place, text(9 * unit));
  });

  test("the platform still writes what tenants are to see", async () => {
    const event = {
      metadata: { namespace: "a", name: "e" },
      involvedObject: { kind: "ConfigMap", namespace: "a", name: "fill-0" },
      reason: "Full",
      message: "no room",
    };
    await expect(tenant.create(resources.events, event)).rejects.toMatchObject({ code: 403 });
    await expect(platform.create(resources.events, event)).resolves.toBeDefined();
    // It has a bound, too.
    expect(await fill("a", platform, "own")).toMatchObject({ code: 403 });
  });

  test("a finalizer can be removed by a manager that has not written the object before", async () => {
    const metadata = { namespace: "b", name: "kept", finalizers: ["example.com/kept"] };
    await tenant.create(resources.configMaps, { metadata });
    await fill("b");
    await fillUp("b");
    const kept = { namespace: "b", name: "kept" };
    await tenant.delete(resources.configMaps, kept);
    const other = new KubeClient(server.transport({ name: "bob", groups: ["system:masters"] }), {
      fieldManager: "m".repeat(100),
    });
    await other.patch(resources.configMaps, kept, { metadata: { finalizers: null } });
    await expect(tenant.get(resources.configMaps, kept)).rejects.toMatchObject({ code: 404 });
  });

  test("a restart counts the same, and says nothing", async () => {
    await server.close();
    await start();
    expect(server.storeProblem).toBeUndefined();
    await expect(create("more", 2 * unit)).rejects.toMatchObject({ code: 403 });
  });

  test("a start with a smaller limit says so and serves deletes", async () => {
    await server.close();
    const errors: string[] = [];
    const error = (_: object, message: string) => void errors.push(message);
    const log = { debug() {}, info() {}, warn() {}, error, child: () => log } as never;
    await start({ log, storeQuota: { total: 4096 * unit, perNamespace: 50 * unit } });
    expect(server.storeProblem).toMatch(
      /^objects of namespace a take 0\.5 MiB, more than the limit of 0\.2 MiB$/,
    );
    expect(errors.join()).toContain("until some are deleted, nothing can be added");
    await expect(create("more", 10)).rejects.toThrow("limited to 256000");
    await tenant.raw("DELETE", "/api/v1/namespaces/a/configmaps");
    expect(server.storeProblem).toBeUndefined();
    await expect(create("more", 10)).resolves.toBeDefined();
  });
});

test("objects without a namespace have a limit of their own", async () => {
  const annotations = { text: "x".repeat(10 * unit) };
  const made = Array.from({ length: 10 }, (_, index) =>
    tenant.create(resources.namespaces, { metadata: { name: `n-${index}`, annotations } }),
  );
  await expect(Promise.all(made)).rejects.toThrow(
    "exceeded the limit of stored bytes of objects without a namespace",
  );
  await expect(create("one", 10 * unit)).resolves.toBeDefined();
});

test("when all namespaces together are full, those with little can still grow", async () => {
  await server.close();
  await start({ storeQuota: { total: 1100 * unit, perNamespace: 1100 * unit } });
  const refusal = await fill();
  expect(refusal.message).toMatch(
    /all namespaces together: used \d+, requested \d+ more, limited to 5632000/,
  );
  await expect(create("small", 5 * unit, "b")).resolves.toBeDefined();
  await expect(create("large", 20 * unit, "b")).rejects.toMatchObject({ code: 403 });
});

test("patches cannot make an object larger than one may be", async () => {
  await server.close();
  await start({ storeQuota: { total: Infinity, perNamespace: Infinity } });
  const place = { namespace: "a", name: "grows" };
  const env = (index: number) => [{ name: `v-${index}`, value: "x".repeat(2_500_000) }];
  const template = {
    metadata: { labels: { a: "b" } },
    spec: { containers: [{ name: "c", image: "i" }] },
  };
  await tenant.create(resources.deployments, {
    metadata: place,
    spec: { selector: { matchLabels: { a: "b" } }, template },
  });
  const grow = (index: number) =>
    tenant.patch(
      resources.deployments,
      place,
      { spec: { template: { spec: { containers: [{ name: "c", env: env(index) }] } } } },
      { type: "strategic" },
    );
  await grow(0);
  await grow(1);
  await expect(grow(2)).rejects.toMatchObject({
    code: 413,
    message: expect.stringMatching(
      /the object would have \d+ characters as it is stored, limited to 6291456/,
    ),
  });
});
