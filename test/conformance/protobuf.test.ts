/** What kubectl writes through Go's typed clients, which speak protobuf. */
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

let harness: Harness;
const kubectl = (...args: string[]) => harness.kubectl(...args);

async function objectOf(...args: string[]): Promise<Record<string, unknown>> {
  const object = JSON.parse(await kubectl(...args)) as Record<string, unknown>;
  return withoutNothing(object) as Record<string, unknown>;
}

/** Nulls and empty objects are how Go tells in JSON that there is nothing. */
function withoutNothing(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value)
    .map(([key, each]) => [key, withoutNothing(each)] as const)
    .filter(([, each]) => JSON.stringify(each) !== "{}" && each !== null);
  return Object.fromEntries(entries);
}

describe.skipIf(!hasKubectl())("kubectl in protobuf", () => {
  beforeAll(async () => {
    harness = await startHarness();
    await harness.client.create(resources.nodes, { metadata: { name: "n1" } });
  });
  afterAll(() => harness?.close());

  test("is what it speaks", async () => {
    const args = ["create", "configmap", "spoken", "--from-literal=a=1", "-v=8"];
    const { code, stderr } = await harness.kubectlWith("", ...args);
    expect([code, stderr.match(/content-type: (\S+)/gi)]).toEqual([
      0,
      [
        "Content-Type: application/vnd.kubernetes.protobuf",
        "Content-Type: application/vnd.kubernetes.protobuf",
      ],
    ]);
  });

  test.each([
    ["configmap", "settings", "--from-literal=color=blue", "--from-literal=empty="],
    ["secret generic", "token", "--from-literal=password=s3cret"],
    ["deployment", "web", "--image=nginx:1", "--replicas=2", "--port=80"],
    ["job", "once", "--image=busybox:1", "--", "echo", "done"],
    ["cronjob", "often", "--image=busybox:1", "--schedule=*/5 * * * *"],
    ["namespace", "team"],
    ["service clusterip", "web", "--tcp=80:8080"],
    ["service externalname", "far", "--external-name=example.com"],
    ["serviceaccount", "robot"],
    ["role", "reader", "--verb=get,list", "--resource=pods"],
    ["rolebinding", "readers", "--role=reader", "--serviceaccount=default:robot"],
    ["clusterrole", "everything", "--verb=*", "--resource=deployments.apps"],
    ["quota", "limit", "--hard=cpu=1500m,pods=10"],
    ["poddisruptionbudget", "web", "--selector=app=web", "--min-available=50%"],
    ["priorityclass", "high", "--value=1000"],
    ["ingress", "web", "--rule=example.com/=web:80"],
  ])("creates a %s", async (kind, name, ...args) => {
    const create = ["create", ...kind.split(" "), name];
    const wanted = await objectOf(...create, "--dry-run=client", "-o", "json", ...args);
    expect(await kubectl(...create, ...args)).toContain(`/${name} created`);
    expect(await objectOf("get", kind.split(" ")[0] ?? "", name, "-o", "json")).toMatchObject(
      wanted,
    );
  });

  test("scales, cordons and deletes", async () => {
    await kubectl("scale", "deployment/web", "--replicas=0", "--current-replicas=2");
    await kubectl("cordon", "n1");
    const template = (path: string) => ["-o", `jsonpath={${path}}`];
    expect(await kubectl("get", "deployment/web", ...template(".spec.replicas"))).toBe("0");
    expect(await kubectl("get", "node/n1", ...template(".spec.unschedulable"))).toBe("true");
    await kubectl("uncordon", "n1");
    expect(await kubectl("get", "node/n1", ...template(".spec.unschedulable"))).toBe("");
    expect(await kubectl("delete", "configmap/settings")).toContain("deleted");
  });

  test("tells failures", async () => {
    await expect(kubectl("create", "secret", "generic", "token")).rejects.toThrow(
      'secrets "token" already exists',
    );
    await expect(kubectl("create", "configmap", "Not_A_Name")).rejects.toThrow("RFC 1123");
  });
});
