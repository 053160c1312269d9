/** The same as warm.test.ts where Pods are containers of an OCI runtime: from zero with a container that was waiting. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deployOnDemand, untilZero } from "../support/on-demand.ts";
import { Platform } from "../support/platform.ts";
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

    async function waiting(): Promise<number> {
      const text = await (await fetch(`${platform.endpoints.metrics}/metrics`)).text();
      return Number(/^spry_warm_processes (\d+)$/m.exec(text)?.[1] ?? 0);
    }

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
        await deploy("other", "module.exports = { main: () => 'hello' };");
        const secretMounts = [{ secretName: "keys", mountPath: "/etc/secret" }];
        await deploy("first", javascript, { secretMounts });
        const [cold, warm] = await coldAndWarm("first");
        expect([cold.isWarm, warm.isWarm]).toEqual([false, true]);
        expect(general(warm)).toEqual(general(cold));
        expect(warm).toMatchObject({ secret: "s3cret" });
        expect((await platform.call("first.default", { path: "/peer" })).body).toBe("hello");
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
