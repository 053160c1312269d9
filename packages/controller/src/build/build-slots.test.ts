import * as fc from "fast-check";
import { type Change, type Job } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { BuildSlots, type JobCache } from "./build-slots.ts";

/** Jobs that appear and finish when the test says so. */
class Jobs implements JobCache {
  readonly #jobs = new Map<string, Job>();
  readonly #listeners: ((change: Change<Job>) => void)[] = [];

  list() {
    return this.#jobs.values();
  }

  onChange(listener: (change: Change<Job>) => void) {
    this.#listeners.push(listener);
    return () => {};
  }

  set(name: string, conditions: { type: string; status: string }[] = [], namespace = "shop"): void {
    const labels = { "serverless.kyma-project.io/function-name": name };
    const object: Job = { metadata: { name, namespace, labels }, status: { conditions } };
    this.#jobs.set(`${namespace}/${name}`, object);
    for (const listener of this.#listeners) listener({ type: "added", object });
  }

  finish(name: string): void {
    this.set(name, [{ type: "Complete", status: "True" }]);
  }
}

/** Functions that want to build: each tries when it comes, and again only when it is woken. */
class Functions {
  readonly jobs = new Jobs();
  readonly granted: string[] = [];
  readonly building = new Set<string>();
  readonly slots: BuildSlots;
  readonly #left = new Set<string>();

  constructor(max: number) {
    this.slots = new BuildSlots(max, this.jobs, (key) => this.try(key.slice("shop/".length)));
  }

  try(name: string): void {
    if (this.building.has(name) || this.#left.has(name)) return;
    if (!this.slots.tryEnter(`shop/${name}`)) return;
    this.granted.push(name);
    this.building.add(name);
  }

  leave(name: string): void {
    if (this.building.has(name)) return;
    this.#left.add(name);
    this.slots.leave(`shop/${name}`);
  }

  finish(name: string): void {
    if (!this.building.delete(name)) return;
    this.jobs.set(name);
    this.jobs.finish(name);
  }
}

describe("build slots", () => {
  test("never give more places than there are, keep the order, and forget no build", () => {
    const step = fc.record({
      of: fc.nat(11),
      does: fc.constantFrom("come", "leave", "show", "finish"),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 80 }),
        (max, steps) => {
          const functions = new Functions(max);
          const came: string[] = [];
          const left = new Set<string>();
          for (const { of, does } of steps) {
            const name = `fn-${of}`;
            if (does === "come" && !came.includes(name)) {
              came.push(name);
              functions.try(name);
            } else if (
              does === "leave" &&
              came.includes(name) &&
              !functions.granted.includes(name)
            ) {
              left.add(name);
              functions.leave(name);
            } else if (does === "show" && functions.building.has(name)) {
              functions.jobs.set(name);
            } else if (does === "finish") {
              functions.finish(name);
            }
            expect(functions.building.size).toBeLessThanOrEqual(max);
          }
          while (functions.building.size > 0) functions.finish([...functions.building][0]!);
          expect(functions.granted).toEqual(came.filter((name) => !left.has(name)));
        },
      ),
      { seed: 5, numRuns: 300 },
    );
  });

  test("count what was being built before a restart, and go on with who waited longest", () => {
    const functions = new Functions(1);
    functions.jobs.set("old");
    functions.slots.restore(["shop/first", "shop/second"]);
    for (const name of ["second", "third", "first"]) functions.try(name);
    expect(functions.granted).toEqual([]);
    functions.jobs.finish("old");
    while (functions.building.size > 0) functions.finish([...functions.building][0]!);
    expect(functions.granted).toEqual(["first", "second", "third"]);
  });

  test("let a Function's new build take the place of its old one", () => {
    const functions = new Functions(1);
    functions.try("a");
    functions.jobs.set("a");
    expect(functions.slots.tryEnter("shop/a")).toBe(true);
    expect(functions.slots.tryEnter("shop/b")).toBe(false);
  });

  test("let a namespace with few builds go before one with many", () => {
    const jobs = new Jobs();
    const granted: string[] = [];
    const slots: BuildSlots = new BuildSlots(2, jobs, (key) => {
      if (slots.tryEnter(key)) granted.push(key);
    });
    const come = (key: string) => {
      if (slots.tryEnter(key)) granted.push(key);
    };
    for (let i = 0; i < 50; i++) come(`many/fn-${i}`);
    for (const key of ["few/a", "few/b", "one/a"]) come(key);
    expect(granted).toEqual(["many/fn-0", "many/fn-1"]);
    for (let next = 0; next < 5; next++) {
      const [namespace = "", name = ""] = (granted[next] ?? "").split("/");
      jobs.set(name, [], namespace);
      jobs.set(name, [{ type: "Complete", status: "True" }], namespace);
    }
    // Each in turn; within a namespace, who came first.
    expect(granted.slice(2)).toEqual(["few/a", "one/a", "many/fn-2", "few/b", "many/fn-3"]);
  });
});
