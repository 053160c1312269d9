import { type UnknownObject } from "@spry/kube";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtin, type Schema } from "../schema/schema.ts";
import { compare } from "./comparison.ts";
import { difference, equalSets, type FieldSet, intersection, pathsOf, union } from "./field-set.ts";
import { applyObject, managedFieldsAfterUpdate } from "./managed-fields.ts";
import { fieldsOf, merge } from "./typed-value.ts";

const deployment = builtin.definitions["io.k8s.api.apps.v1.Deployment"] as Schema;
const podSpec = builtin.definitions["io.k8s.api.core.v1.PodSpec"] as Schema;

const writer = (manager: string) => ({
  manager,
  apiVersion: "apps/v1",
  now: "2026-01-01T00:00:00Z",
});
const object = (spec: object) => ({ metadata: { name: "d" }, spec }) as unknown as UnknownObject;

/** Applies for a manager and keeps the result, like the server. */
function apply(
  live: UnknownObject | undefined,
  manager: string,
  spec: object,
  force = false,
): UnknownObject {
  const next = applyObject(live, object(spec), deployment, writer(manager), { force });
  next.object.metadata.managedFields = next.managedFields;
  return next.object;
}

function update(live: UnknownObject, manager: string, spec: object): UnknownObject {
  const next = { ...live, spec } as UnknownObject;
  next.metadata = {
    ...live.metadata,
    managedFields: managedFieldsAfterUpdate(live, next, deployment, writer(manager)),
  };
  return next;
}

const owned = (live: UnknownObject, manager: string) =>
  (live.metadata.managedFields ?? [])
    .filter((entry) => entry.manager === manager)
    .flatMap((entry) => pathsOf(entry.fieldsV1 as FieldSet));

const containers = (...list: object[]) => ({ template: { spec: { containers: list } } });

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** What `kubectl apply` leaves. */
function clientSideApplied(spec: object): UnknownObject {
  const annotations = {
    [lastApplied]: JSON.stringify({ apiVersion: "apps/v1", metadata: {}, spec }),
  };
  const created = { metadata: { name: "d", annotations } } as unknown as UnknownObject;
  return update(created, "kubectl-client-side-apply", spec);
}

describe("server-side apply of what kubectl applied before", () => {
  const live = clientSideApplied({ replicas: 1 });

  test("takes over without a conflict, and brings the annotation up to date", () => {
    const next = apply(live, "kubectl", { replicas: 2 });
    expect(next.spec).toEqual({ replicas: 2 });
    expect(next.metadata.annotations?.[lastApplied]).toBe(
      '{"metadata":{"name":"d"},"spec":{"replicas":2}}\n',
    );
  });

  test.each<[string, UnknownObject, string]>([
    ["under another name", live, "other"],
    ["when the field has another value now", update(live, "scaler", { replicas: 3 }), "kubectl"],
    [
      "when the annotation is damaged",
      { ...live, metadata: { ...live.metadata, annotations: { [lastApplied]: "{" } } },
      "kubectl",
    ],
  ])("conflicts %s", (_, before, manager) => {
    expect(() => apply(before, manager, { replicas: 2 })).toThrow("Apply failed with 1 conflict");
  });
});

describe("the fields that an object sets", () => {
  test.each([
    [{ replicas: 1 }, [".spec.replicas"]],
    [{ paused: null }, [".spec.paused"]],
    [{ selector: { matchLabels: { a: "b" } } }, [".spec.selector"]],
    [
      containers({ name: "a", image: "x" }),
      [
        '.spec.template.spec.containers[name="a"]',
        '.spec.template.spec.containers[name="a"].image',
        '.spec.template.spec.containers[name="a"].name',
      ],
    ],
    [
      containers({ name: "a", ports: [{ containerPort: 80 }] }),
      [
        '.spec.template.spec.containers[name="a"]',
        '.spec.template.spec.containers[name="a"].name',
        '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]',
        '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].containerPort',
      ],
    ],
    [
      containers({ name: "a", command: ["x", "y"] }),
      [
        '.spec.template.spec.containers[name="a"]',
        '.spec.template.spec.containers[name="a"].command',
        '.spec.template.spec.containers[name="a"].name',
      ],
    ],
  ])("%j", (spec, paths) => {
    expect(pathsOf(fieldsOf({ spec }, deployment))).toEqual(paths);
  });
});

describe("server-side apply", () => {
  test("two managers may say the same, and own it together", () => {
    const live = apply(apply(undefined, "one", { replicas: 2 }), "two", { replicas: 2 });
    expect(owned(live, "one")).toEqual([".spec.replicas"]);
    expect(owned(live, "two")).toEqual([".spec.replicas"]);
    expect(apply(live, "one", {}).spec).toEqual({ replicas: 2 });
    expect(apply(apply(live, "one", {}), "two", {}).spec).toEqual({});
  });

  test("another value is a conflict, and by force a change of owner", () => {
    const live = apply(undefined, "one", { replicas: 2, paused: true });
    expect(() => apply(live, "two", { replicas: 3, paused: false })).toThrow(
      'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.paused\n- .spec.replicas',
    );
    const taken = apply(live, "two", { replicas: 3 }, true);
    expect(owned(taken, "one")).toEqual([".spec.paused"]);
    expect(owned(taken, "two")).toEqual([".spec.replicas"]);
  });

  test("an ordinary write takes what it changes", () => {
    const live = update(apply(undefined, "one", { replicas: 2, paused: true }), "kubectl", {
      replicas: 5,
      paused: true,
    });
    expect(owned(live, "one")).toEqual([".spec.paused"]);
    expect(owned(live, "kubectl")).toEqual([".spec.replicas"]);
    expect(() => apply(live, "one", { replicas: 2 })).toThrow(
      'conflict with "kubectl" using apps/v1: .spec.replicas',
    );
  });

  test("items of a list by key come and go one by one", () => {
    let live = apply(
      undefined,
      "one",
      containers({ name: "a", image: "1" }, { name: "b", image: "1" }),
    );
    live = apply(live, "two", containers({ name: "c", image: "1" }));
    live = apply(live, "one", containers({ name: "b", image: "2" }));
    expect(live.spec).toEqual(containers({ name: "b", image: "2" }, { name: "c", image: "1" }));
  });

  test("an item to which another manager has added stays with the fields of that manager", () => {
    let live = apply(undefined, "one", containers({ name: "a", image: "1" }));
    live = apply(live, "two", containers({ name: "a", tty: true }));
    live = apply(live, "one", {});
    expect(live.spec).toEqual(containers({ name: "a", tty: true }));
  });

  test("an item that is named twice is refused", () => {
    expect(() => apply(undefined, "one", containers({ name: "a" }, { name: "a" }))).toThrow(
      'duplicate entries for key [name="a"]',
    );
  });
});

const container = fc.record(
  {
    image: fc.constantFrom("x", "y"),
    tty: fc.boolean(),
    env: fc.uniqueArray(
      fc.record({ name: fc.constantFrom("A", "B"), value: fc.constantFrom("1", "2") }),
      { selector: ({ name }) => name },
    ),
    command: fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const spec = fc.record(
  {
    containers: fc.uniqueArray(
      fc
        .tuple(fc.constantFrom("a", "b", "c"), container)
        .map(([name, rest]) => ({ name, ...rest })),
      { selector: ({ name }) => name },
    ),
    nodeSelector: fc.dictionary(fc.constantFrom("k", "l"), fc.constantFrom("1", "2")),
    hostNetwork: fc.boolean(),
  },
  { requiredKeys: [] },
);

describe("sets of fields", () => {
  const sets = spec.map((value) => fieldsOf(value, podSpec));
  test("union, intersection and difference are those of sets of paths", () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const left = pathsOf(a);
        const right = pathsOf(b);
        expect(new Set(pathsOf(union(a, b)))).toEqual(new Set([...left, ...right]));
        expect(pathsOf(intersection(a, b))).toEqual(left.filter((path) => right.includes(path)));
        expect(pathsOf(difference(a, b))).toEqual(left.filter((path) => !right.includes(path)));
      }),
    );
  });

  test("comparing finds nothing exactly when nothing differs", () => {
    fc.assert(
      fc.property(spec, spec, (a, b) => {
        expect(compare(a, structuredClone(a), podSpec)).toEqual({
          added: {},
          modified: {},
          removed: {},
        });
        const forth = compare(a, b, podSpec);
        const back = compare(b, a, podSpec);
        expect(equalSets(forth.added, back.removed)).toBe(true);
        expect(equalSets(forth.modified, back.modified)).toBe(true);
      }),
    );
  });

  test("what is merged holds all that was applied, and applying again changes nothing", () => {
    fc.assert(
      fc.property(spec, spec, (live, applied) => {
        const merged = merge(live, applied, podSpec);
        const { modified, removed } = compare(applied, merged, podSpec);
        expect([modified, removed]).toEqual([{}, {}]);
        expect(merge(merged, applied, podSpec)).toEqual(merged);
      }),
    );
  });

  test("a manager that applies nothing any more leaves nothing of its own behind", () => {
    const template = (value: object) => ({ template: { spec: value } });
    fc.assert(
      fc.property(spec, spec, (mine, theirs) => {
        const both = apply(apply(undefined, "me", template(mine)), "they", template(theirs), true);
        const without = apply(both, "me", {});
        // The empty object itself is what it still applies.
        expect(owned(without, "me")).toEqual([".spec"]);
        const alone = apply(undefined, "they", template(theirs));
        const { added, modified, removed } = compare(alone, without, deployment);
        const differing = pathsOf(union(union(added, modified), removed)).filter((path) =>
          path.startsWith(".spec"),
        );
        // Empty containers have no owner.
        expect(
          differing.filter(
            (path) => !/^(?:\.spec|.*\.(?:template|spec|nodeSelector|containers|env))$/.test(path),
          ),
        ).toEqual([]);
      }),
    );
  });
});
