/** The node of our own real cluster runs Pods, and leaves nothing behind on the machine. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Pod, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pauseImage } from "../../tools/real-apiserver/node/images.ts";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

const reason = process.env["KUBECONFIG"]
  ? "KUBECONFIG names a cluster that has nodes of its own"
  : whyNoCluster({ node: true });
const cluster = new RealCluster();
const patience = { timeout: 60_000, interval: 100 };

describe.skipIf(reason !== undefined)(`node${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let before: Record<string, string>;
  beforeAll(async () => {
    before = machine();
    await cluster.start({ node: true });
  });
  afterAll(() => cluster.stop());

  test("a Pod runs, has an address, and ends when it is asked to", async () => {
    const { client } = cluster;
    const target = { namespace: "default", name: "probe" };
    const limits = { memory: "64Mi", cpu: "200m" };
    const main = {
      name: "main",
      image: pauseImage,
      imagePullPolicy: "Never",
      resources: { limits },
    };
    await client.create<Pod>(resources.pods, { metadata: target, spec: { containers: [main] } });
    const address = async () => (await client.get(resources.pods, target)).status?.podIP;
    await expect.poll(address, patience).toMatch(/^10\.244\.0\./);
    await client.delete(resources.pods, target);
    const isThere = async () =>
      (await client.list(resources.pods, { namespace: "default" })).items.length;
    await expect.poll(isThere, patience).toBe(0);
  });

  test("the API server reads a container's log through the kubelet", async () => {
    const { client } = cluster;
    const { items } = await client.list(resources.pods, { namespace: "kube-system" });
    const url = `/api/v1/namespaces/kube-system/pods/${items[0]?.metadata.name}/log`;
    expect(await (await client.raw("GET", url)).text()).toContain("CoreDNS-");
  });

  test("after its end the machine is as it was", async () => {
    await cluster.stop();
    expect(machine()).toEqual(before);
  });
});

/** What a node changes outside its namespaces. */
function machine(): Record<string, string> {
  const read = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim() : "");
  const forwarding = readdirSync("/proc/sys/net/ipv4/conf").map(
    (name) => `${name}=${read(`/proc/sys/net/ipv4/conf/${name}/forwarding`)}`,
  );
  const groups = readdirSync("/sys/fs/cgroup").flatMap((name) =>
    existsSync(path.join("/sys/fs/cgroup", name, "cgroup.procs"))
      ? readdirSync(path.join("/sys/fs/cgroup", name)).filter((each) => each.startsWith("spry-"))
      : [],
  );
  const run = (file: string, ...args: string[]) =>
    execFileSync(file, args, { encoding: "utf8" })
      .replace(/^#.*$/gm, "")
      .replace(/ \[\d+:\d+\]/g, "");
  return {
    links:
      run("ip", "-o", "link")
        .match(/spry\d+/g)
        ?.join() ?? "",
    routes: run("ip", "-4", "route"),
    nat: run("iptables", "-t", "nat", "-S"),
    filter: run("iptables", "-S"),
    mounts: readFileSync("/proc/self/mounts", "utf8"),
    forwarding: forwarding.join(),
    panic: read("/proc/sys/kernel/panic"),
    overcommit: read("/proc/sys/vm/overcommit_memory"),
    groups: groups.join(),
  };
}
