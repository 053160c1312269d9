import { type ContainerStatus, ManualClock, type Pod } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { phaseOf, type PodFacts, podStatus, qosClassOf } from "./pod-status.ts";

const at = "2026-01-01T00:00:00Z";
const base = { restartCount: 0, image: "i", imageID: "", ready: false };
const waiting = (reason: string, last?: number): ContainerStatus => ({
  ...base,
  name: "c",
  state: { waiting: { reason } },
  lastState: last === undefined ? {} : { terminated: { exitCode: last } },
});
const running = (ready = true): ContainerStatus => ({
  ...base,
  name: "c",
  ready,
  started: true,
  state: { running: { startedAt: at } },
});
const ended = (exitCode: number): ContainerStatus => ({
  ...base,
  name: "c",
  state: { terminated: { exitCode } },
});

function podOf(restartPolicy: string, initContainers = 0): Pod {
  const init = Array.from({ length: initContainers }, () => ({ name: "c", image: "i" }));
  return {
    metadata: { name: "p" },
    spec: { restartPolicy, initContainers: init, containers: [{ name: "c", image: "i" }] },
  };
}
const factsOf = (
  containers: ContainerStatus[],
  initContainers: ContainerStatus[] = [],
): PodFacts => ({
  containers,
  initContainers,
  hostIp: "127.0.0.1",
  podIp: "127.1.0.1",
  startTime: at,
});

describe("the phase", () => {
  test.each([
    { policy: "Always", containers: [waiting("ContainerCreating")], phase: "Pending" },
    { policy: "Always", containers: [running()], phase: "Running" },
    { policy: "Always", containers: [ended(0)], phase: "Running" },
    { policy: "Always", containers: [waiting("CrashLoopBackOff", 1)], phase: "Running" },
    { policy: "Never", containers: [ended(0)], phase: "Succeeded" },
    { policy: "Never", containers: [ended(1)], phase: "Failed" },
    { policy: "Never", containers: [ended(1), running()], phase: "Running" },
    { policy: "Never", init: [running()], containers: [ended(0)], phase: "Running" },
    { policy: "OnFailure", containers: [ended(0)], phase: "Succeeded" },
    { policy: "OnFailure", containers: [ended(1)], phase: "Running" },
    {
      policy: "Never",
      init: [ended(1)],
      containers: [waiting("PodInitializing")],
      phase: "Failed",
    },
    {
      policy: "Always",
      init: [ended(1)],
      containers: [waiting("PodInitializing")],
      phase: "Pending",
    },
    { policy: "Always", init: [ended(0)], containers: [running()], phase: "Running" },
  ])("$policy with $containers.0.state: $phase", ({ policy, init = [], containers, phase }) => {
    expect(phaseOf(podOf(policy, init.length), factsOf(containers, init))).toBe(phase);
  });

  test.each([
    { exitCode: 0, phase: "Succeeded" },
    { exitCode: 143, phase: "Failed" },
  ])("a deleted Pod whose container ended with $exitCode has $phase", ({ exitCode, phase }) => {
    expect(phaseOf(podOf("Always"), { ...factsOf([ended(exitCode)]), isTerminal: true })).toBe(
      phase,
    );
  });
});

describe("the conditions", () => {
  const clock = new ManualClock();
  const conditionsOf = (pod: Pod, facts: PodFacts) =>
    Object.fromEntries(
      (podStatus(pod, facts, clock).conditions ?? []).map(({ type, status, reason }) => [
        type,
        reason ? `${status}/${reason}` : status,
      ]),
    );

  test("of a Pod that runs and is ready are all true", () => {
    expect(conditionsOf(podOf("Always"), factsOf([running()]))).toEqual({
      PodReadyToStartContainers: "True",
      Initialized: "True",
      ContainersReady: "True",
      Ready: "True",
      PodScheduled: "True",
    });
  });

  test("name the containers that are not ready", () => {
    const status = podStatus(podOf("Always"), factsOf([running(false)]), clock);
    expect(status.conditions?.find(({ type }) => type === "Ready")).toMatchObject({
      status: "False",
      reason: "ContainersNotReady",
      message: "containers with unready status: [c]",
    });
  });

  test("say that a Pod has completed", () => {
    expect(conditionsOf(podOf("Never"), factsOf([ended(0)]))).toMatchObject({
      ContainersReady: "False/PodCompleted",
      Ready: "False/PodCompleted",
    });
  });

  test("say which init containers are not through", () => {
    const facts = factsOf([waiting("PodInitializing")], [waiting("PodInitializing")]);
    expect(conditionsOf(podOf("Always", 1), facts)).toMatchObject({
      Initialized: "False/ContainersNotInitialized",
    });
  });

  test("wait for readiness gates", () => {
    const gated = podOf("Always");
    gated.spec = {
      ...gated.spec,
      containers: gated.spec?.containers ?? [],
      readinessGates: [{ conditionType: "example.com/ok" }],
    };
    expect(conditionsOf(gated, factsOf([running()]))).toMatchObject({
      ContainersReady: "True",
      Ready: "False/ReadinessGatesNotReady",
    });
  });
});

test.each([
  { resources: {}, qos: "BestEffort" },
  { resources: { requests: { cpu: "1" } }, qos: "Burstable" },
  { resources: { limits: { cpu: "1", memory: "1Mi" } }, qos: "Guaranteed" },
])("$qos follows from $resources", ({ resources, qos }) => {
  expect(qosClassOf({ metadata: {}, spec: { containers: [{ name: "c", resources }] } })).toBe(qos);
});
