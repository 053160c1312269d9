import { createApiServer } from "@spry/apiserver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { StatusError } from "./errors.ts";
import { type Change, Informer, type InformerOptions } from "./informer.ts";
import { ManualClock } from "./manual-clock.ts";
import { type ConfigMap, resources } from "./resources.ts";
import { type Transport } from "./transport.ts";

/** A transport whose next requests of a kind can be made to go wrong. */
interface Faulty {
  transport: Transport;
  /** Takes the next watch (or list) away from the server. */
  next: {
    watch: ((real: Transport, request: Request) => Promise<Response>)[];
    list: Faulty["next"]["watch"];
  };
  watches: URL[];
  lists: URL[];
}

function faulty(real: Transport): Faulty {
  const faults: Faulty = {
    next: { watch: [], list: [] },
    watches: [],
    lists: [],
    async transport(request) {
      const url = new URL(request.url);
      if (request.method !== "GET") return real(request);
      const kind = url.searchParams.has("watch") ? "watch" : "list";
      faults[kind === "watch" ? "watches" : "lists"].push(url);
      const fault = faults.next[kind].shift();
      return fault ? fault(real, request) : real(request);
    },
  };
  return faults;
}

const expired = async () =>
  Response.json(new StatusError({ code: 410, message: "too old" }).status, { status: 410 });
const expiredLater = async () => {
  const object = new StatusError({ code: 410, message: "too old" }).status;
  return new Response(`${JSON.stringify({ type: "ERROR", object })}\n`);
};
const cutShort = async () => new Response('{"type":"ADDED","object":{"meta');
const refused = async () => {
  throw new Error("connect ECONNREFUSED");
};
const silent = async (_: Transport, request: Request) =>
  new Response(
    new ReadableStream({
      start: (c) => request.signal.addEventListener("abort", () => c.error(request.signal.reason)),
    }),
  );

let server: Awaited<ReturnType<typeof createApiServer>>;
let client: KubeClient;
let faults: Faulty;
let clock: ManualClock;
let stop: AbortController;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
  faults = faulty(server.transport());
  clock = new ManualClock();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await server.close();
});

async function start(options: InformerOptions<ConfigMap> = {}) {
  const informer = new Informer(new KubeClient(faults.transport), resources.configMaps, {
    namespace: "default",
    clock,
    random: () => 1,
    ...options,
  });
  const changes: string[] = [];
  informer.onChange(({ type, object }: Change<ConfigMap>) =>
    changes.push(`${type} ${object.metadata.name}`),
  );
  const ended = informer.run(stop.signal);
  return { informer, changes, ended };
}

async function write(name: string, data?: Record<string, string>): Promise<void> {
  const metadata = { namespace: "default", name };
  if (!data) await client.delete(resources.configMaps, metadata);
  else await client.create(resources.configMaps, { metadata, data });
}

/** Lets the informer's promises and, with them, the in-process server run. */
async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 2000 && !condition(); i++) await clock.advance(0);
  expect(condition()).toBe(true);
}

describe("an informer", () => {
  test("lists page by page and then follows every change", async () => {
    await Promise.all(["a", "b", "c", "d", "e"].map((name) => write(name, {})));
    // The client's page size is a property of its requests, so the pages are made smaller on their way.
    const small = async (real: Transport, request: Request) =>
      real(new Request(request.url.replace("limit=500", "limit=2")));
    faults.next.list.push(small, small, small);
    const { informer, changes } = await start();
    await until(() => informer.hasSynced);
    expect(changes).toEqual(["a", "b", "c", "d", "e"].map((name) => `added ${name}`));
    await write("f", {});
    await client.patch(
      resources.configMaps,
      { namespace: "default", name: "f" },
      { data: { x: "1" } },
    );
    await write("f");
    await until(() => changes.includes("deleted f"));
    expect(changes.slice(5)).toEqual(["added f", "updated f", "deleted f"]);
    expect(informer.size).toBe(5);
    expect(faults.watches[0]?.searchParams.get("allowWatchBookmarks")).toBe("true");
  });

  test.each([
    ["ends", async () => new Response("")],
    ["is cut in the middle of a line", cutShort],
    ["is refused", refused],
  ])("resumes where it was after a watch that %s, without a new list", async (_, fault) => {
    faults.next.watch.push(fault);
    const { informer, changes } = await start();
    await until(() => informer.hasSynced && faults.watches.length === 1);
    await write("a", {});
    await clock.advance(200);
    await until(() => changes.length === 1);
    expect(changes).toEqual(["added a"]);
    expect(faults.lists).toHaveLength(1);
  });

  test.each([
    ["in place of the watch", expired],
    ["within the watch", expiredLater],
  ])("lists again when its version has expired %s, and tells what it missed", async (_, fault) => {
    await write("stays", {});
    await write("goes", {});
    await write("again", { a: "1" });
    const held = Promise.withResolvers<void>();
    faults.next.watch.push(async () => {
      await held.promise;
      return fault();
    });
    const { informer, changes } = await start();
    await until(() => informer.hasSynced && faults.watches.length === 1);
    changes.splice(0);
    await write("goes");
    await write("comes", {});
    await write("again");
    await write("again", { a: "2" });
    held.resolve();
    await clock.advance(200);
    await until(() => changes.length >= 4);
    expect(changes.sort()).toEqual(["added again", "added comes", "deleted again", "deleted goes"]);
    expect(faults.lists).toHaveLength(2);
  });

  test("starts its list over when a page has expired", async () => {
    await write("a", {});
    faults.next.list.push(expired);
    const { informer } = await start();
    await clock.advance(200);
    await until(() => informer.hasSynced);
    expect(informer.get("default/a")).toBeDefined();
  });

  test("takes up the version of a bookmark", async () => {
    faults.next.watch.push(async () => {
      const object = { kind: "ConfigMap", metadata: { resourceVersion: "4242" } };
      return new Response(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
    });
    const { changes } = await start();
    await clock.advance(200);
    await until(() => faults.watches.length === 2);
    expect(faults.watches[1]?.searchParams.get("resourceVersion")).toBe("4242");
    expect(changes).toEqual([]);
  });

  test("gives up a watch that the server should have ended long ago", async () => {
    faults.next.watch.push(silent);
    const { informer, changes } = await start();
    await until(() => informer.hasSynced && faults.watches.length === 1);
    await write("a", {});
    await clock.advance(600_000);
    expect(changes).toEqual([]);
    await clock.advance(31_000);
    await until(() => changes.length === 1);
  });

  test("tries again in growing pauses while the server is away", async () => {
    faults.next.list.push(refused, refused, refused, refused, refused);
    const at: number[] = [];
    const { transport } = faults;
    faults.transport = (request) => {
      at.push(clock.now());
      return transport(request);
    };
    const { informer } = await start({ maxRetryMs: 400 });
    await clock.advance(2000);
    await until(() => informer.hasSynced);
    expect(at.slice(0, 6).map((time) => time - (at[0] ?? 0))).toEqual([
      0, 100, 300, 700, 1100, 1500,
    ]);
  });

  test("survives a listener that throws, and so do the other listeners", async () => {
    const { informer, changes } = await start();
    const others: string[] = [];
    informer.onChange(() => {
      throw new Error("careless");
    });
    informer.onChange(({ object }) => others.push(object.metadata.name ?? ""));
    await until(() => informer.hasSynced);
    await write("a", {});
    await write("b", {});
    await until(() => changes.length === 2);
    expect(others).toEqual(["a", "b"]);
  });

  test("finds objects by index, also after they moved", async () => {
    const { informer } = await start({
      indexes: { colour: ({ data }) => (data?.colour ? [data.colour] : []) },
    });
    const names = (value: string) =>
      informer.byIndex("colour", value).map(({ metadata }) => metadata.name);
    await write("a", { colour: "red" });
    await write("b", { colour: "red" });
    await until(() => informer.size === 2);
    expect(new Set(names("red"))).toEqual(new Set(["a", "b"]));
    const target = { namespace: "default", name: "a" };
    await client.patch(resources.configMaps, target, { data: { colour: "blue" } });
    await write("b");
    await until(() => informer.size === 1 && names("blue").length === 1);
    expect([names("red"), names("blue")]).toEqual([[], ["a"]]);
  });

  test("keeps only the requested parts of an object", async () => {
    const { informer } = await start({ transform: ({ metadata }) => ({ metadata }) });
    await write("a", { large: "x".repeat(1000) });
    await until(() => informer.size === 1);
    expect(informer.get("default/a")).not.toHaveProperty("data");
  });

  test("ends at once when it is asked to", async () => {
    const { informer, ended } = await start();
    await until(() => informer.hasSynced && faults.watches.length === 1);
    stop.abort();
    await ended;
  });
});
