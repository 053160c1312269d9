/** Helm, with a chart that has an object of nearly every kind, hooks, a definition of its own, and looks objects up. */
import { execFile, type ExecFileException } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { type Pod, resources } from "@spry/kube";
import { startControllers } from "@spry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { helm } from "../../../tools/helm/helm.ts";
import { type Harness, startHarness } from "../harness.ts";

const program = helm();
const chart = path.join(import.meta.dirname, "testdata/chart");

/** Command → what it prints (stdout and stderr), and how it ends when not with 0. */
const commands: [string, RegExp, number?][] = [
  ["install it chart", /STATUS: deployed\n/],
  ["install it chart", /cannot re-use a name that is still in use/, 1],
  ["template it chart --validate --is-upgrade", /kind: HorizontalPodAutoscaler/],
  ["upgrade it chart --dry-run=server", /earlier: "{\\"earlier\\":/],
  ["list", /^it\s.*\s1\s.*deployed\s+everything-1\.0\.0/m],
  ["status it", /STATUS: deployed/],
  ["get manifest it", /kind: Gadget/],
  ["get hooks it", /helm.sh\/hook: pre-install/],
  ["test it", /TEST SUITE:\s+test\n(?:.*\n)*Phase:\s+Succeeded/],
  ["upgrade it chart --set image=web:2,claim=false --atomic --timeout 60s", /STATUS: deployed/],
  ["get manifest it", /image: "web:2"/],
  // Its Pods never start.
  [
    "upgrade it chart --set image=broken,claim=false --atomic --timeout 5s",
    /UPGRADE FAILED: release it failed, and has been rolled back due to atomic being set/,
    1,
  ],
  ["history it", /superseded(?:.*\n)*.*failed(?:.*\n)*.*deployed.*Rollback to 2/],
  ["rollback it 1", /Rollback was a success/],
  ["get values it --all", /image: web:1/],
  ["uninstall it --wait --timeout 60s", /release "it" uninstalled/],
  ["list", /^NAME\s+NAMESPACE.*\n$/],
];

describe.skipIf(!existsSync(program))(`Helm (needs ${program})`, () => {
  let harness: Harness;
  let playing = Promise.resolve();
  const ending = new AbortController();

  beforeAll(async () => {
    harness = await startHarness();
    await startControllers({ client: harness.client, signal: ending.signal });
    playing = playNode(harness, ending.signal);
  });
  afterAll(async () => {
    ending.abort();
    await playing;
    await harness.close();
  });

  test("installs, upgrades, rolls back and removes", { timeout: 180_000 }, async () => {
    for (const [command, printed, code = 0] of commands) {
      const answer = await run(harness, command);
      const expected = { command, printed: expect.stringMatching(printed), code };
      expect.soft({ command, ...answer }).toEqual(expected);
    }
    const left = await harness.kubectl("get", "deploy,hpa,ingress,cronjobs,pdb", "-o", "name");
    expect(left).toBe("");
    // Helm leaves definitions.
    expect(await harness.kubectl("get", "gadgets", "-o", "name")).toBe("");
  });
});

function run(harness: Harness, command: string): Promise<{ printed: string; code: number }> {
  const { directory: HOME, kubeconfig: KUBECONFIG } = harness;
  const options = { env: { PATH: process.env.PATH, HOME, KUBECONFIG }, timeout: 90_000 };
  const args = command.split(" ").map((word) => (word === "chart" ? chart : word));
  return new Promise((resolve) => {
    execFile(program, args, options, (error: ExecFileException | null, stdout, stderr) => {
      resolve({ printed: stdout + stderr, code: error ? Number(error.code ?? -1) : 0 });
    });
  });
}

/** Every Pod runs at once; those of hooks have done their work. */
async function playNode({ client }: Harness, signal: AbortSignal): Promise<void> {
  const start = async (pod: Pod) => {
    const image = pod.spec?.containers[0]?.image;
    if (pod.status?.phase !== "Pending" || image === "broken") return;
    const status =
      image === "hook"
        ? { phase: "Succeeded" }
        : { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const target = { namespace: pod.metadata.namespace, name: pod.metadata.name } as never;
    await client.patch(resources.pods, target, { status }, { subresource: "status" });
  };
  while (!signal.aborted) {
    const { items } = await client.list(resources.pods, {});
    // One that is gone again needs nothing.
    await Promise.allSettled(items.map(start));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
