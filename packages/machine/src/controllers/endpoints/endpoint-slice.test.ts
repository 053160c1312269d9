import { type Pod, type Service } from "@spry/kube";
import { expect, test } from "vitest";
import { desiredSlices } from "./endpoint-slice.ts";

const service: Service = {
  metadata: { name: "web", namespace: "default", uid: "s", labels: { team: "a" } },
  spec: {
    clusterIP: "10.96.0.7",
    selector: { app: "web" },
    ports: [{ name: "http", port: 80, targetPort: "http" }],
  },
};

function podOf(
  name: string,
  more: { ready?: boolean; deleting?: boolean; phase?: string; port?: number; ip?: string } = {},
): Pod {
  const { ready = true, deleting, phase = "Running", port = 8080, ip = "127.0.0.9" } = more;
  return {
    metadata: {
      name,
      namespace: "default",
      uid: name,
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      nodeName: "n",
      containers: [{ name: "c", ports: [{ name: "http", containerPort: port }] }],
    },
    status: {
      phase,
      ...(ip ? { podIP: ip } : {}),
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    },
  };
}

test.each([
  {
    name: "a ready Pod",
    pod: podOf("a"),
    conditions: { ready: true, serving: true, terminating: false },
  },
  {
    name: "a Pod that is not ready",
    pod: podOf("a", { ready: false }),
    conditions: { ready: false, serving: false, terminating: false },
  },
  {
    name: "a Pod on its way out",
    pod: podOf("a", { deleting: true }),
    conditions: { ready: false, serving: true, terminating: true },
  },
])("$name: $conditions", ({ pod, conditions }) => {
  const [slice] = desiredSlices(service, [pod]);
  expect(slice?.endpoints).toMatchObject([
    { addresses: ["127.0.0.9"], conditions, targetRef: { kind: "Pod", name: "a" } },
  ]);
  expect(slice?.ports).toEqual([{ name: "http", protocol: "TCP", port: 8080 }]);
  expect(slice?.metadata.labels).toEqual({
    team: "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
  });
});

test("ended Pods and Pods without an address are left out; the slice stays, empty", () => {
  const slices = desiredSlices(service, [
    podOf("a", { phase: "Succeeded" }),
    podOf("b", { ip: "" }),
  ]);
  expect(slices).toHaveLength(1);
  expect(slices[0]).toMatchObject({ endpoints: [], ports: [] });
});

test("Pods whose named port differs are in slices of their own", () => {
  const slices = desiredSlices(service, [podOf("a"), podOf("b", { port: 9090 }), podOf("c")]);
  expect(slices.map(({ ports, endpoints }) => [ports?.[0]?.port, endpoints.length])).toEqual([
    [8080, 2],
    [9090, 1],
  ]);
});

test("a slice has at most a hundred endpoints", () => {
  const pods = Array.from({ length: 250 }, (_, i) => podOf(`p${i}`));
  const slices = desiredSlices(service, pods);
  expect(slices.map(({ endpoints }) => endpoints.length)).toEqual([100, 100, 50]);
  expect(new Set(slices.map(({ metadata }) => metadata.name)).size).toBe(3);
});

test("publishNotReadyAddresses makes every address ready", () => {
  const open = { ...service, spec: { ...service.spec, publishNotReadyAddresses: true } };
  const [slice] = desiredSlices(open, [podOf("a", { ready: false })]);
  expect(slice?.endpoints[0]?.conditions?.ready).toBe(true);
});
