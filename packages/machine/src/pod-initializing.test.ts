import { resources } from "@spry/kube";
import { expect, test } from "vitest";
import { eventually, startMachine } from "./testing.ts";

test("a container that waits for init containers says PodInitializing, as clients expect", async () => {
  const { client, registry } = await startMachine();
  const main = "setInterval(() => {}, 1000);";
  const image = await registry.push(
    "app:1",
    { "app/main.cjs": main },
    { Entrypoint: ["node", "/app/main.cjs"] },
  );
  const target = { namespace: "default", name: "p" };
  await client.create(resources.pods, {
    metadata: target,
    spec: { initContainers: [{ name: "first", image }], containers: [{ name: "main", image }] },
  });
  await eventually(async () => {
    const { status = {} } = await client.get(resources.pods, target);
    expect(status.initContainerStatuses?.[0]?.state).toHaveProperty("running");
    expect(status.containerStatuses?.[0]?.state).toEqual({
      waiting: { reason: "PodInitializing" },
    });
  });
});
