import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createApiServer } from "@spry/apiserver";
import { expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { type Change, Informer, type InformerOptions } from "./informer.ts";
import { type ConfigMap, resources } from "./resources.ts";

const key = "default/settings";

/** Informers of one process over one API server, each for itself. */
async function withInformers(
  options: InformerOptions<ConfigMap>[],
  check: (informers: Informer<ConfigMap>[], client: KubeClient) => Promise<void>,
): Promise<void> {
  const server = await createApiServer({ dataDir: ":memory:" });
  const stop = new AbortController();
  try {
    const client = new KubeClient(server.transport());
    await write(client, "1");
    const informers = options.map(
      (each) =>
        new Informer(new KubeClient(server.transport()), resources.configMaps, {
          namespace: "default",
          ...each,
        }),
    );
    for (const informer of informers) void informer.run(stop.signal);
    await Promise.all(informers.map(({ synced }) => synced));
    await check(informers, client);
  } finally {
    stop.abort();
    await server.close();
  }
}

async function write(client: KubeClient, value: string, labels = { kept: "yes" }): Promise<void> {
  const metadata = { name: "settings", namespace: "default", labels };
  await client.apply(resources.configMaps, { metadata, data: { value } });
}

const showing = (informer: Informer<ConfigMap> | undefined, value: string) =>
  expect.poll(() => informer?.get(key)?.data?.["value"]).toBe(value);

test("what two informers list is held once", () =>
  withInformers([{}, { labelSelector: "kept=yes" }], async ([all, selected]) => {
    expect(all?.get(key)).toBeDefined();
    expect(selected?.get(key)).toBe(all?.get(key));
  }));

test("what two informers hear of is held once", () =>
  withInformers([{}, { labelSelector: "kept=yes" }], async ([all, selected], client) => {
    await write(client, "2");
    await showing(all, "2");
    await showing(selected, "2");
    expect(selected?.get(key)).toBe(all?.get(key));
  }));

test("what an informer keeps of an object is part of what another one holds", () =>
  withInformers(
    [{}, { transform: ({ metadata, data }) => ({ metadata, ...(data && { data }) }) }],
    async ([all, some], client) => {
      await write(client, "2");
      await showing(all, "2");
      await showing(some, "2");
      expect(some?.get(key)).not.toBe(all?.get(key));
      expect(some?.get(key)?.data).toBe(all?.get(key)?.data);
    },
  ));

test("the last state before an object left a selection is not shared", () =>
  withInformers([{ labelSelector: "kept=yes" }, {}], async ([selected, all], client) => {
    const left: ConfigMap[] = [];
    selected?.onChange(({ type, object }) => {
      if (type === "deleted") left.push(object);
    });
    await write(client, "2", { kept: "no" });
    await showing(all, "2");
    await expect.poll(() => left.length).toBe(1);
    // Its version is that of the change.
    expect(left[0]?.metadata.resourceVersion).toBe(all?.get(key)?.metadata.resourceVersion);
    expect(left[0]?.data).toEqual({ value: "1" });
    expect(all?.get(key)?.metadata.labels).toEqual({ kept: "no" });
  }));

test("objects of one name on two API servers are two", () =>
  withInformers([{}], ([first]) =>
    withInformers([{}], async ([second]) => {
      expect(second?.get(key)).toBeDefined();
      expect(second?.get(key)).not.toBe(first?.get(key));
    }),
  ));

test("an object that rests is one object to all who use it", () =>
  withInformers([{ resting: true }, { resting: true }], async ([one, another]) => {
    const used = one?.get(key);
    await collectGarbage();
    expect(used?.data).toEqual({ value: "1" });
    expect(another?.get(key)).toBe(used);
  }));

test("an object that rests is parsed only while it is in use", () =>
  withInformers([{ resting: true, indexes: { value: valueOf } }], async ([informer], client) => {
    const changes: Change<ConfigMap>[] = [];
    const parsed = parsedIn(informer);
    // The latest few events are remembered for all users of them.
    for (let i = 0; i < 40; i++)
      await client.create(resources.configMaps, {
        metadata: { name: `other-${i}`, namespace: "default" },
      });
    await expect.poll(() => informer?.get("default/other-39")).toBeDefined();
    await expect.poll(() => collectGarbage().then(() => parsed.deref())).toBeUndefined();

    expect(informer?.byIndex("value", "1").map(({ data }) => data)).toEqual([{ value: "1" }]);
    informer?.onChange((change) => void changes.push(change));
    await write(client, "2");
    await showing(informer, "2");
    expect(changes.at(-1)).toMatchObject({ type: "updated", previous: { data: { value: "1" } } });
    expect(informer?.byIndex("value", "1")).toEqual([]);
  }));

const valueOf = ({ data }: ConfigMap) => [data?.["value"] ?? ""];

/** In a function of its own: nothing of the caller's holds it. */
const parsedIn = (informer: Informer<ConfigMap> | undefined) =>
  new WeakRef(informer?.get(key) as ConfigMap);

async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // What a turn has looked at through a weak reference stays until its end.
  await setImmediate();
  collect();
}
