/** Functions from zero whose runtime was waiting for them: as others are, in whatever they can see, and sooner. More: warm.full.test.ts. */
import { readdirSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deployOnDemand, untilZero } from "../support/on-demand.ts";
import { functionManifest, Platform } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { coldAndWarm, figure } from "../support/warm-starts.ts";
import { untilTrue } from "../support/until-true.ts";

const limitMs = 180_000;
const waitMs = 60_000;
const platform = new Platform({ args: ["--no-example", "--sandbox=process", "--warm=2"] });

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", impatientServing);
}, limitMs);
afterAll(() => platform.remove(), limitMs);

const deploy = (name: string, source: string, more: object = {}) =>
  deployOnDemand(platform, name, source, more);

const javascript = `const fs = require("node:fs");
const seen = () => ({ env: { ...process.env }, cwd: process.cwd(), uid: process.getuid(), program: process.argv[1],
  secret: fs.readFileSync(process.env.SPRY_ROOT + "/etc/secret/key", "utf8"),
  first: fs.readFileSync("/proc/self/environ", "utf8").split("\\0"),
  processes: fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).map((pid) => { try { return fs.readFileSync("/proc/" + pid + "/environ", "utf8"); } catch { return ""; } }).join("\\0"),
  mounts: fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").filter(Boolean).map((line) => line.split(" ")[4]) });
module.exports = { main: async (event) => {
  if (event.extensions.request.url === "/peer") return (await fetch("http://other.default/")).text();
  console.log("called");
  return seen();
} };`;

test(
  "a Function from zero becomes the process that waited, and finds there only what is its own",
  async () => {
    await platform.k("create secret generic token --from-literal=key=s3cret");
    const secretMounts = [{ secretName: "token", mountPath: "/etc/secret" }];
    await deploy("first", javascript, { secretMounts, env: [{ name: "GREETING", value: "hi" }] });
    const warm = await coldAndWarm(platform, "first");
    expect([warm["secret"], warm.env["GREETING"]]).toEqual(["s3cret", "hi"]);
    // What the process was started with names no Function and no Pod.
    const started = (warm["first"] as string[]).map((entry) => entry.split("=")[0]);
    const known = ["NODE_ENV", "NODE_OPTIONS", "PATH", "SPRY_READY_FD", "SPRY_WARM_FD"];
    expect(started.filter((name) => name && !known.includes(name))).toEqual([]);
    const selector = "-l serving.knative.dev/service=first";
    const uid = await platform.k(`get pods ${selector} -o jsonpath={.items[*].metadata.uid}`);
    await platform.k(
      "apply -f -",
      functionManifest("other", `module.exports = { main: () => "other" };`),
    );
    const ofPods = (warm["mounts"] as string[]).filter((at) => at.includes("/pods/"));
    expect(ofPods.filter((at) => !at.includes(`/pods/${uid}/`))).toEqual([]);
    await platform.k("wait --for=condition=Running function/other --timeout=60s");
    const peer = await platform.call("first.default", { path: "/peer" });
    expect(peer.body).toBe("other");
    const pod = await platform.k(`get pods ${selector} -o name`);
    expect(await platform.k(`logs ${pod.trim()}`)).toBe("called\n");
    const { stdout } = await platform.kubectl(["exec", pod.trim(), "--", "printenv", "GREETING"]);
    expect(stdout).toBe("hi\n");
    const node = await platform.k("get nodes -o json");
    expect(node).toContain(`"node.spry.io/warm-processes": "at most 2"`);
  },
  limitMs,
);

test(
  "kill -9 of the platform leaves none waiting; the next one goes on with the Function that took one over",
  async () => {
    await deploy("survivor", javascript.replace("seen()", "process.pid"), {
      scaleConfig: { minReplicas: 1, maxReplicas: 1 },
    });
    await untilTrue(
      "runtimes that wait",
      async () => (await waitingIn(platform.dataDir)).length > 0,
      waitMs,
    );
    await platform.kill();
    await untilTrue(
      "none waits",
      async () => (await waitingIn(platform.dataDir)).length === 0,
      waitMs,
    );
    await platform.start();
    expect(await platform.call("survivor.default")).toMatchObject({ status: 200 });
    expect(await figure(platform, "spry_warm_processes")).toBe(0);
  },
  limitMs,
);

/** Processes that wait: their output has not become a container's log. */
async function waitingIn(dataDir: string): Promise<string[]> {
  const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return names.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/1`).startsWith(`${dataDir}/node/warm/`);
    } catch {
      // It has ended.
      return false;
    }
  });
}

test(
  "a Pod of another namespace does not take what waits for an image that it may not use",
  async () => {
    await deployOnDemand(platform, "coveted", "module.exports = { main: () => 1 };");
    await platform.call("coveted.default");
    const selector = "-l serving.knative.dev/service=coveted";
    const image = await platform.k(
      `get pods ${selector} -o jsonpath={.items[0].spec.containers[0].image}`,
    );
    await untilZero(platform, "coveted");
    const waiting = async () => (await figure(platform, "spry_warm_processes"))!;
    await untilTrue("a runtime that waits", async () => (await waiting()) > 0, waitMs);
    const before = await waiting();
    await platform.k("create namespace thief");
    const labels = { "serving.knative.dev/revision": "any" };
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "thief", namespace: "thief", labels },
      spec: { containers: [{ name: "function", image, imagePullPolicy: "IfNotPresent" }] },
    };
    await platform.k("apply -f -", JSON.stringify(pod));
    await untilTrue(
      "the image is refused",
      async () => {
        const status = await platform.k(
          "get pod thief -n thief -o jsonpath={.status.containerStatuses}",
        );
        return /ErrImagePull|ImagePullBackOff/.test(status);
      },
      waitMs,
    );
    expect(await waiting()).toBe(before);
    await platform.k("delete namespace thief --wait=false");
  },
  limitMs,
);
