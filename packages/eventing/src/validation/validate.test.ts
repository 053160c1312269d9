import { describe, expect, test } from "vitest";
import { type Subscription } from "@spry/function";
import { type Service } from "@spry/kube";
import { convertSubscription } from "../conversion/convert.ts";
import { assess } from "./assess.ts";

const subscription = (spec: object, name = "s"): Subscription => ({
  apiVersion: "eventing.kyma-project.io/v1alpha2",
  kind: "Subscription",
  metadata: { name, namespace: "shop" },
  spec: {
    sink: "http://fn.shop.svc.cluster.local",
    source: "commerce",
    types: ["order.created.v1"],
    ...spec,
  },
});
const service = { metadata: {}, spec: { ports: [{ port: 80 }] } } as Service;
const services: Record<string, Service> = {
  "shop/fn": service,
  "other/fn": service,
  "shop/out": { metadata: {}, spec: { type: "ExternalName", ports: [{ port: 80 }] } },
};
const look = (spec: object) => assess(subscription(spec), (key) => services[key]);
const problem = (spec: object) => {
  const result = look(spec);
  return "problem" in result ? result.problem : undefined;
};

describe("a Subscription that says something wrong is reported in the original's words", () => {
  const invalid = (path: string, value: string, detail: string) =>
    `Subscription validation failed: ${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`;
  test.each([
    [{ source: "" }, invalid("spec.source", "", "must not be empty")],
    [{ source: "a b" }, invalid("spec.source", "a b", "must be valid as per RFC 3986")],
    [{ types: [] }, invalid("spec.types", "", "must not be empty")],
    [{ types: ["a.b", "a.b"] }, invalid("spec.types", "a.b", "must not have duplicate types")],
    [{ types: [""] }, invalid("spec.types", "", "must not be of length zero")],
    [{ types: ["order"] }, invalid("spec.types", "order", "must have minimum 2 segments")],
    [
      { types: ["sap.kyma.custom.a.b"] },
      invalid("spec.types", "sap.kyma.custom.a.b", "must not have sap.kyma.custom as type prefix"),
    ],
    [
      { config: { maxInFlightMessages: "many" } },
      invalid("spec.config", "many", "maxInFlightMessages must be a stringified int value"),
    ],
    [{ sink: "" }, invalid("spec.sink", "", "must not be empty")],
    [
      { sink: "fn.shop" },
      invalid("spec.sink", "fn.shop", "must have URL scheme 'http' or 'https'"),
    ],
    [
      { sink: "http://169.254.169.254/" },
      invalid(
        "spec.sink",
        "http://169.254.169.254/",
        "must have valid sink URL suffix svc.cluster.local",
      ),
    ],
    [
      { sink: "http://user:pw@fn.shop.svc.cluster.local" },
      invalid("spec.sink", "http://user:pw@fn.shop.svc.cluster.local", "must not have credentials"),
    ],
    [
      { sink: "http://fn.other.svc.cluster.local" },
      invalid(
        "metadata.namespace",
        "http://fn.other.svc.cluster.local",
        "must have the same namespace as the subscriber: other",
      ),
    ],
    [
      { sink: "http://none.shop.svc.cluster.local" },
      "Subscription validation failed: Sink validation failed: service none.shop not found in the cluster",
    ],
    [
      { sink: "http://fn.shop.svc.cluster.local:81" },
      "Subscription validation failed: Sink validation failed: service fn.shop has no port 81",
    ],
  ])("%j", (spec, message) => {
    expect(problem(spec)).toBe(message);
  });

  test("a Service that leads out of the cluster", () => {
    expect(problem({ sink: "http://out.shop.svc.cluster.local" })).toMatch(/of type ExternalName/);
  });
});

describe("which events are chosen", () => {
  const chosen = (spec: object) => {
    const result = look(spec);
    return "plan" in result ? result.plan.consumer : undefined;
  };
  test("standard: by the original's names", () => {
    expect(chosen({})).toMatchObject({
      subjects: ["event:sap.kyma.custom.commerce.order.created.v1"],
      filter: undefined,
    });
  });
  test("exact: by full names, or by source and type as they are", () => {
    const full = "sap.kyma.custom.commerce.order.created.v1";
    expect(chosen({ typeMatching: "exact", source: "", types: [full] })).toMatchObject({
      subjects: [`event:${full}`],
    });
    expect(chosen({ typeMatching: "exact", source: "/a/b", types: ["x.y"] })).toEqual({
      subjects: ["event:sap.kyma.custom.ab.x.y"],
      filter: [{ any: [{ exact: { type: "x.y", source: "/a/b" } }] }],
      owner: "shop",
      orderBy: undefined,
    });
    expect(chosen({ typeMatching: "exact", source: "", types: ["x.y"] })).toMatchObject({
      subjects: "all",
    });
  });
});

test("versions convert into each other without loss", () => {
  const newer = subscription({
    typeMatching: "standard",
    config: { maxInFlightMessages: "5", "protocolsettings.qos": "AT_LEAST_ONCE" },
    delivery: { maxAttempts: 3 },
    filters: [{ exact: { region: "eu" } }],
  });
  const older = convertSubscription(newer, "eventing.kyma-project.io/v1alpha1");
  expect(older).toMatchObject({
    spec: {
      filter: {
        filters: [{ eventSource: { value: "commerce" }, eventType: { value: "order.created.v1" } }],
      },
      config: { maxInFlightMessages: 5 },
      protocolsettings: { qos: "AT_LEAST_ONCE" },
    },
  });
  const back = convertSubscription(older, "eventing.kyma-project.io/v1alpha2");
  expect(back).toMatchObject({ spec: newer.spec });
});

test("more than one source cannot be converted", () => {
  const part = (value: string) => ({ eventSource: { value }, eventType: { value: "a.b" } });
  const older = {
    apiVersion: "eventing.kyma-project.io/v1alpha1",
    metadata: {},
    spec: { sink: "", filter: { filters: [part("a"), part("b")] } },
  };
  expect(() => convertSubscription(older, "eventing.kyma-project.io/v1alpha2")).toThrow(
    "subscription contains more than 1 eventSource",
  );
});

describe("what v1alpha1 keeps of v1alpha2 in an annotation", () => {
  const converted = (kept: object) => {
    const { spec } = convertSubscription(
      {
        apiVersion: "eventing.kyma-project.io/v1alpha1",
        kind: "Subscription",
        metadata: {
          name: "s",
          namespace: "shop",
          annotations: { "eventing.kyma-project.io/v1alpha2-spec": JSON.stringify(kept) },
        },
        spec: {
          sink: "http://fn.shop.svc.cluster.local",
          filter: { filters: [{ eventType: { value: "a.b" }, eventSource: { value: "s" } }] },
        },
      } as never,
      "eventing.kyma-project.io/v1alpha2",
    ) as Subscription;
    return spec;
  };
  const wrong: object[] = [
    { filters: [5] },
    { filters: "abc" },
    { filters: [{ exact: { a: 1 } }] },
    { filters: [{ not: { not: { exact: { a: "1" } } } }] },
    { filters: [{ exact: { a: "1" }, prefix: { a: "1" } }] },
    { filters: Array.from({ length: 33 }, () => ({ exact: { a: "1" } })) },
    { delivery: 5 },
    { delivery: { orderBy: "__proto__" } },
    { delivery: { backoffSeconds: 0 } },
    { delivery: { maxAttempts: 1e12 } },
    { delivery: { timeoutSeconds: 1e9 } },
    { delivery: { timeoutSeconds: "60" } },
    { delivery: { deadLetters: "Never" } },
  ];
  test.each(wrong.map((each) => [each]))("is not taken over when it is %j", (kept) => {
    const spec = converted(kept);
    expect([spec.filters, spec.delivery]).toEqual([undefined, undefined]);
    expect(problem(kept)).toContain("Subscription validation failed: spec.");
    expect(problem(kept)).toContain(Object.keys(kept)[0]);
  });

  test("is taken over when it is right", () => {
    const kept = {
      typeMatching: "standard",
      filters: [{ not: { prefix: { region: "eu-" } } }],
      delivery: { maxAttempts: 3, orderBy: "partitionkey", deadLetters: "Discard" },
    };
    expect(converted(kept)).toMatchObject(kept);
    expect(problem(kept)).toBeUndefined();
  });
});
