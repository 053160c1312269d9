import { createApiServer } from "@spry/apiserver";
import { afterEach, describe, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { Controller, type Reconcile } from "./controller.ts";
import { StatusError } from "./errors.ts";
import { Informer } from "./informer.ts";
import { type Logger, silentLogger } from "./log.ts";
import { ManualClock } from "./manual-clock.ts";
import { prometheusMetrics } from "./metrics/controller-metrics.ts";
import { controllerRef } from "./owner.ts";
import { resources } from "./resources.ts";

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function start(reconcile: Reconcile, options: { workers?: number; log?: Logger } = {}) {
  const clock = new ManualClock();
  const stop = new AbortController();
  stops.push(stop);
  const controller = new Controller({
    name: "test",
    reconcile,
    clock,
    timeoutMs: 1000,
    ...options,
  });
  const ended = controller.run(stop.signal);
  return { clock, stop, controller, ended };
}

describe("a controller", () => {
  test("retries a pass that fails, with growing pauses, until it works", async () => {
    const at: number[] = [];
    const { clock, controller } = start(async () => {
      at.push(clock.now());
      if (at.length < 4) throw new Error("not yet");
    });
    controller.enqueue("a");
    await clock.advance(1000);
    expect(at.map((time) => time - (at[0] ?? 0))).toEqual([0, 5, 15, 35]);
    expect(controller.queue.failuresOf("a")).toBe(0);
  });

  test("takes an error thrown before the first await like any other", async () => {
    let passes = 0;
    const { clock, controller } = start(() => {
      passes++;
      throw new Error("at once");
    });
    controller.enqueue("a");
    await clock.advance(16);
    expect(passes).toBe(3);
  });

  test("moves while a worker is free, or gets free in time", async () => {
    const passes: (() => void)[] = [];
    const { clock, controller } = start(
      () => new Promise<void>((resolve) => void passes.push(resolve)),
      { workers: 2 },
    );
    controller.enqueue("a");
    await clock.advance(0);
    expect(await controller.moves(100)).toBe(true);
    controller.enqueue("b");
    await clock.advance(0);
    const late = controller.moves(100);
    await clock.advance(100);
    expect(await late).toBe(false);
    const early = controller.moves(100);
    await clock.advance(50);
    passes[0]?.();
    expect(await early).toBe(true);
  });

  test("looks again after the pause that a pass asked for", async () => {
    let passes = 0;
    const { clock, controller } = start(async () => {
      passes++;
      return { requeueAfterMs: 500 };
    });
    controller.enqueue("a");
    await clock.advance(1100);
    expect(passes).toBe(3);
  });

  test("never runs two passes of a key at a time, not even after a timeout", async () => {
    const running: string[] = [];
    const events: string[] = [];
    const release = Promise.withResolvers<void>();
    const { clock, controller } = start(
      async (key, signal) => {
        expect(running).not.toContain(key);
        running.push(key);
        events.push(`start ${key}`);
        // The first pass does not care that it was abandoned.
        if (events.length === 1) await release.promise;
        events.push(`end ${key} ${signal.aborted ? "late" : "in time"}`);
        running.splice(running.indexOf(key), 1);
      },
      { workers: 1 },
    );
    controller.enqueue("a");
    await clock.advance(5000);
    controller.enqueue("b");
    await clock.advance(5000);
    expect(events).toEqual(["start a", "start b", "end b in time"]);
    release.resolve();
    await clock.advance(1000);
    expect(events.slice(3)).toEqual(["end a late", "start a", "end a in time"]);
  });

  test("gives up on an abandoned pass that never ends, and says so", async () => {
    const errors: string[] = [];
    const log: Logger = { ...silentLogger, error: (_, m) => errors.push(m), child: () => log };
    let passes = 0;
    const { clock, controller } = start(
      () => (passes++ === 0 ? new Promise(() => {}) : Promise.resolve()),
      { log },
    );
    controller.enqueue("a");
    await clock.advance(700_000);
    expect(passes).toBe(2);
    expect(errors).toEqual([expect.stringContaining("abandoned pass")]);
  });

  test("ends only when the passes under way have", async () => {
    const release = Promise.withResolvers<void>();
    const { clock, controller, stop, ended } = start(() => release.promise);
    controller.enqueue("a");
    await clock.advance(1);
    stop.abort();
    const order: string[] = [];
    const over = ended.then(() => order.push("ended"));
    await clock.advance(1);
    order.push("released");
    release.resolve();
    await over;
    expect(order).toEqual(["released", "ended"]);
  });

  test("logs a conflict quietly and everything else loudly", async () => {
    const logged: string[] = [];
    const note = (level: string) => (fields: object) =>
      logged.push(`${level} ${(fields as { error: string }).error}`);
    const log: Logger = {
      ...silentLogger,
      debug: note("debug"),
      warn: note("warn"),
      child: () => log,
    };
    const failures = [
      new StatusError({ code: 409, message: "raced" }),
      new Error("writing", { cause: new Error("refused") }),
    ];
    const { clock, controller } = start(
      async () => {
        const failure = failures.shift();
        if (failure) throw failure;
      },
      { log },
    );
    controller.enqueue("a");
    await clock.advance(100);
    expect(logged).toEqual(["debug raced", "warn writing: refused"]);
  });

  test("counts in the names of controller-runtime", async () => {
    const metrics = prometheusMetrics();
    const stop = new AbortController();
    stops.push(stop);
    const clock = new ManualClock();
    let passes = 0;
    const reconcile = async () => {
      if (passes++ === 0) throw new Error("first");
    };
    const controller = new Controller({ name: "fn", reconcile, clock, metrics });
    void controller.run(stop.signal);
    controller.enqueue("a");
    await clock.advance(100);
    const text = metrics.render();
    expect(text).toContain('controller_runtime_reconcile_total{controller="fn",result="error"} 1');
    expect(text).toContain(
      'controller_runtime_reconcile_total{controller="fn",result="success"} 1',
    );
    expect(text).toContain('workqueue_adds_total{name="fn"} 2');
    expect(text).toContain('workqueue_retries_total{name="fn"} 1');
    expect(text).toContain('workqueue_depth{name="fn"} 0');
  });

  test("hears of its objects and of what they own, once the informers are in sync", async () => {
    const server = await createApiServer({ dataDir: ":memory:" });
    const client = new KubeClient(server.transport());
    const stop = new AbortController();
    stops.push(stop);
    const owner = await client.create(resources.configMaps, {
      metadata: { namespace: "default", name: "owner" },
    });
    const owners = new Informer(client, resources.configMaps);
    const owned = new Informer(client, resources.secrets);
    const seen: string[] = [];
    const woken = Promise.withResolvers<void>();
    const controller = new Controller({
      name: "test",
      reconcile: async (key) => {
        expect([owners.hasSynced, owned.hasSynced]).toEqual([true, true]);
        seen.push(key);
        if (owned.size > 0) woken.resolve();
      },
    });
    controller.watch(owners).watchOwned(owned, resources.configMaps);
    void controller.run(stop.signal);
    void owners.run(stop.signal);
    void owned.run(stop.signal);
    await owned.synced;
    const ownerReferences = [controllerRef(resources.configMaps, owner)];
    const metadata = { namespace: "default", name: "child", ownerReferences };
    await client.create(resources.secrets, { metadata });
    await woken.promise;
    expect(seen.filter((key) => key === "default/owner").length).toBeGreaterThanOrEqual(2);
    stop.abort();
    await server.close();
  });
});
