/** The same as warm.test.ts where Pods are containers of an OCI runtime: from zero with a container that was waiting. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deployOnDemand, untilZero } from "../support/on-demand.ts";
import { functionManifest, Platform } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { untilTrue } from "../support/until-true.ts";

const isRoot = process.getuid?.() === 0;
const limitMs = 180_000;
const waitMs = 60_000;

const javascript = `const fs = require("node:fs");
module.exports = { main: async (event) => {
  if (event.extensions.request.url === "/peer") return (await fetch("http://other.default/")).text();
  return { env: { ...process.env }, cwd: process.cwd(), ids: [process.getuid(), process.getgid(), process.getgroups()],
    secret: fs.readFileSync("/etc/secret/key", "utf8"), isWarm: fs.readFileSync("/proc/self/environ", "utf8").includes("SPRY_WARM_FD"),
    mounts: fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").filter(Boolean).map((line) => line.split(" ")[4]).sort(),
    cgroup: fs.readFileSync("/proc/self/cgroup", "utf8").length,
    status: fs.readFileSync("/proc/self/status", "utf8").split("\\n").filter((line) => /^(Cap|NoNewPrivs|Groups|Seccomp)/.test(line)) };
} };`;

const python = `import os
def main(event, context):
    with open("/proc/self/environ") as file:
        return {"env": dict(os.environ), "cwd": os.getcwd(), "isWarm": "SPRY_WARM_FD" in file.read()}
`;

describe.skipIf(!isRoot)(
  `Functions from zero in containers${isRoot ? "" : " (skipped: needs root)"}`,
  () => {
    const platform = new Platform({ args: ["--no-example", "--sandbox=oci", "--warm=2"] });
    beforeAll(async () => {
      await platform.start();
      await platform.k("apply -f -", impatientServing);
    }, limitMs);
    afterAll(() => platform.remove(), limitMs);

    const deploy = (name: string, source: string, more: object = {}) =>
      deployOnDemand(platform, name, source, more);

    const atZero = (name: string) => untilZero(platform, name);

    async function figure(name: string): Promise<number> {
      const text = await platform.metrics();
      return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
    }

    const waiting = () => figure("spry_warm_processes");

    async function shown(name: string) {
      const { status, body } = await platform.call(`${name}.default`);
      expect({ status, body }).toMatchObject({ status: 200 });
      return JSON.parse(body) as { isWarm: boolean; env: Record<string, string> };
    }

    async function coldAndWarm(name: string) {
      const cold = await shown(name);
      await atZero(name);
      await untilTrue("a container that waits", async () => (await waiting()) > 0, waitMs);
      return [cold, await shown(name)] as const;
    }

    const general = (all: Awaited<ReturnType<typeof shown>>) => {
      const seen = { ...all, isWarm: undefined };
      const text = JSON.stringify(seen);
      return JSON.parse(text.replaceAll(seen.env["HOSTNAME"] ?? "-", "<pod>")) as unknown;
    };

    test(
      "a container that was waiting has what an ordinary one has: limits, user, Secrets, names",
      async () => {
        await platform.k("create secret generic keys --from-literal=key=s3cret");
        const secretMounts = [{ secretName: "keys", mountPath: "/etc/secret" }];
        await deploy("first", javascript, { secretMounts });
        const [cold, warm] = await coldAndWarm("first");
        expect([cold.isWarm, warm.isWarm]).toEqual([false, true]);
        expect(general(warm)).toEqual(general(cold));
        expect(warm).toMatchObject({ secret: "s3cret" });
        await deploy("other", "module.exports = { main: () => 'hello' };");
        expect((await platform.call("first.default", { path: "/peer" })).body).toBe("hello");
      },
      limitMs,
    );

    test(
      "a new version, and its build, take over what waits: with their own limits, Secrets and results",
      async () => {
        const version = async (source: string) => {
          await platform.k("apply -f -", functionManifest("shop", source));
          // As long as the one before ends, it answers as well.
          const isNew = ({ body }: { body: string }) => body.includes(source.slice(-9, -3));
          return (await platform.callUntil("shop.default", isNew)).body;
        };
        const source = (answer: string) =>
          `module.exports = { main: () => [require("node:fs").readFileSync("/proc/self/environ", "utf8").includes("SPRY_WARM_FD"), "${answer}"] };`;
        await version(source("first1"));
        await untilTrue("runtime and builder wait", async () => (await waiting()) === 2, waitMs);
        const used = await figure("spry_warm_starts_total");
        expect(await version(source("second"))).toBe('[true,"second"]');
        expect(await figure("spry_warm_starts_total")).toBe(used + 2);
        const jobs = "get jobs -l serverless.kyma-project.io/function-name=shop";
        const states = await platform.k(`${jobs} -o jsonpath={.items[*].status.succeeded}`);
        expect(states).toBe("1 1");
        expect(
          await platform.k("logs -l serverless.kyma-project.io/function-name=shop,job-name"),
        ).toMatch(/pushed .*pushed /s);
      },
      limitMs,
    );

    test(
      "Python's runtime waits as well",
      async () => {
        await deploy("snake", python, { runtime: "python312" });
        const [cold, warm] = await coldAndWarm("snake");
        expect([cold.isWarm, warm.isWarm]).toEqual([false, true]);
        expect(general(warm)).toEqual(general(cold));
      },
      limitMs,
    );
  },
);
