/** Flux, unmodified: its controllers apply Functions from Git, wait for their health, undo drift and prune. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { flux } from "../../../tools/foreign-tools/flux.ts";
import { endChild } from "../../kit/index.ts";
import { FluxSync } from "../../support/flux-sync.ts";
import { functionManifest, Platform } from "../../support/platform.ts";

const programs = flux();
const minuteMs = 60_000;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
/** Takes a tenth of a core, four times what its autoscaler is to bring it to. */
const busy = `
  setInterval(() => { for (const end = Date.now() + 10; Date.now() < end; ); }, 100);
  ${answering("busy")}`;
const scaled = {
  scaleConfig: { minReplicas: 1, maxReplicas: 3 },
  resourceConfiguration: {
    function: { resources: { requests: { cpu: "50m", memory: "64Mi" } } },
  },
};

describe.skipIf(!programs)("Flux (needs: npm run foreign-tools)", () => {
  const platform = new Platform();
  const sync = new FluxSync(platform);
  /** Requests of Functions that may not start yet. */
  const waiting: ServerResponse[] = [];
  const permission = createServer((_, response) => void waiting.push(response));
  let permissionUrl: string;
  const children: ChildProcess[] = [];
  const manifests: Record<string, string> = {};

  beforeAll(async () => {
    await platform.start();
    const host = platform.hostAddress;
    await new Promise<void>((resolve) => permission.listen(0, host, resolve));
    permissionUrl = `http://${host}:${(permission.address() as AddressInfo).port}/`;
    if (programs) await sync.start(programs);
  }, 3 * minuteMs);
  afterAll(async () => {
    await Promise.all(children.map((child) => endChild(child)));
    await sync[Symbol.asyncDispose]();
    permission.closeAllConnections();
    permission.close();
    await platform.remove();
  });

  beforeEach(({ onTestFailed }) =>
    onTestFailed(() => console.error(sync.programs.output.slice(-6000))),
  );

  /** Adds these to what the repository holds, and has Flux fetch it; returns the revision. */
  async function push(changed: Record<string, string>): Promise<string> {
    const revision = sync.push(Object.assign(manifests, changed));
    await sync.fetch();
    return revision;
  }

  const untilReady = (revision: string) =>
    expect
      .poll(() => sync.condition("Ready", revision), { timeout: 3 * minuteMs })
      .toMatchObject({ status: "True", message: `Applied revision: ${revision}` });
  const untilFailed = (revision: string, message: RegExp) =>
    expect
      .poll(() => sync.condition("Ready", revision), { timeout: 3 * minuteMs })
      .toMatchObject({
        status: "False",
        reason: "HealthCheckFailed",
        message: expect.stringMatching(message),
      });

  const get = (what: string, output: string) => platform.k(`get ${what} -o jsonpath=${output}`);
  test(
    "the first sync is in progress until the Function runs, and then ready",
    async () => {
      const start = `module.exports.start = () => fetch(${JSON.stringify(permissionUrl)});`;
      const revision = sync.push(
        Object.assign(manifests, {
          steady: functionManifest("steady", answering("steady")),
          slow: functionManifest("slow", `${answering("slow")} ${start}`),
        }),
      );
      await sync.install();
      await expect.poll(() => waiting.length, { timeout: 2 * minuteMs }).toBeGreaterThan(0);
      await expect
        .poll(() => sync.condition("Healthy", revision))
        .toMatchObject({
          status: "Unknown",
          message: `Running health checks for revision ${revision} with a timeout of 5m0s`,
        });
      expect(
        await get("function slow", "{.status.conditions[?(@.type=='Reconciling')].status}"),
      ).toBe("True");
      permission.removeAllListeners("request");
      permission.on("request", (_, response) => response.end());
      for (const response of waiting) response.end();
      await untilReady(revision);
      expect((await sync.status()).lastAppliedRevision).toBe(revision);
      for (const name of ["steady", "slow"])
        expect(await platform.call(`${name}.default`)).toMatchObject({ status: 200, body: name });
    },
    5 * minuteMs,
  );

  test(
    "a broken Function fails the sync at once, and what served before goes on serving",
    async () => {
      const dependencies = JSON.stringify({ dependencies: { left: "no version" } });
      const begin = performance.now();
      const unbuilt = await push({
        steady: functionManifest("steady", answering("unbuilt"), { dependencies }),
      });
      await untilFailed(unbuilt, /stalled resources: \[Function\/default\/steady status: 'Failed'/);
      const unloaded = await push({ steady: functionManifest("steady", "module.exports = {") });
      await untilFailed(unloaded, /Function\/default\/steady status: 'Failed'/);
      // Not by the limit of five minutes for each.
      expect(performance.now() - begin).toBeLessThan(4 * minuteMs);
      expect(await platform.call("steady.default")).toMatchObject({ body: "steady" });
      expect((await sync.status()).lastAppliedRevision).not.toBe(unloaded);
    },
    7 * minuteMs,
  );

  test(
    "an edit in Git becomes the code that answers, before the sync is ready",
    async () => {
      const revision = await push({ steady: functionManifest("steady", answering("edited")) });
      await untilReady(revision);
      expect(await platform.call("steady.default")).toMatchObject({ body: "edited" });
    },
    4 * minuteMs,
  );

  test(
    "objects that are as in Git stay untouched by further syncs",
    async () => {
      const before = sync.changes;
      expect(before).toBeGreaterThan(0);
      const generation = await get("functions", "{.items[*].metadata.generation}");
      for (let round = 0; round < 3; round++) await sync.reconcile();
      expect(sync.changes).toBe(before);
      expect(await get("functions", "{.items[*].metadata.generation}")).toBe(generation);
    },
    3 * minuteMs,
  );

  test(
    "what was changed by hand is what Git says again after the next sync",
    async () => {
      const source = { inline: { source: answering("by hand") } };
      const patch = { spec: { source, env: [{ name: "ADDED", value: "by hand" }] } };
      const { code } = await platform.kubectl([
        "patch",
        "function",
        "steady",
        "--type=merge",
        "-p",
        JSON.stringify(patch),
      ]);
      expect(code).toBe(0);
      await platform.callUntil("steady.default", ({ body }) => body === "by hand");
      await sync.reconcile();
      expect(await get("function steady", "{.spec.env}")).toBe("");
      expect(await get("function steady", "{.spec.source.inline.source}")).toBe(
        answering("edited"),
      );
      await platform.callUntil("steady.default", ({ body }) => body === "edited");
      await platform.k("delete function slow");
      await sync.reconcile();
      await untilReady((await sync.status()).lastAttemptedRevision ?? "");
      expect(await platform.call("slow.default")).toMatchObject({ body: "slow" });
    },
    4 * minuteMs,
  );

  test(
    "what an autoscaler has scaled up stays scaled up through syncs and edits",
    async () => {
      await untilReady(await push({ busy: functionManifest("busy", busy, scaled) }));
      const replicas = () => get("function busy", "{.spec.replicas}");
      await expect.poll(replicas, { timeout: 3 * minuteMs }).toBe("3");
      const watched = watch("function/busy", "{.spec.replicas}{'\\n'}");
      const before = sync.changes;
      for (let round = 0; round < 3; round++) await sync.reconcile();
      expect(sync.changes).toBe(before);
      const env = [{ name: "EDITED", value: "yes" }];
      await untilReady(await push({ busy: functionManifest("busy", busy, { ...scaled, env }) }));
      await sync.reconcile();
      expect(await get("function busy", "{.spec.env[0].name}")).toBe("EDITED");
      expect(new Set(watched.lines())).toEqual(new Set(["3"]));
      expect((await get("hpa", "{.items[*].spec.scaleTargetRef.name}")).split(" ")).toEqual([
        "busy",
      ]);
    },
    9 * minuteMs,
  );

  test(
    "what is no longer in Git is pruned, with its Pods",
    async () => {
      delete manifests["busy"];
      delete manifests["slow"];
      await untilReady(await push({}));
      expect(await get("functions", "{.items[*].metadata.name}")).toBe("steady");
      const label = "serverless.kyma-project.io/function-name";
      const rest = `pods,deployments,hpa -l ${label},${label}!=steady`;
      await expect.poll(() => get(rest, "{.items[*].metadata.name}")).toBe("");
      await platform.k("delete kustomization.kustomize.toolkit.fluxcd.io shop");
      await expect.poll(() => get("functions", "{.items[*].metadata.name}")).toBe("");
    },
    4 * minuteMs,
  );

  /** What kubectl sees of an object from now on, a line for each of its states. */
  function watch(object: string, output: string): { lines(): string[] } {
    const args = ["get", object, "--watch", "-o", `jsonpath=${output}`];
    const child = spawn("kubectl", ["--kubeconfig", platform.kubeconfig, ...args]);
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    children.push(child);
    return { lines: () => text.split("\n").filter((line) => line !== "") };
  }
});
