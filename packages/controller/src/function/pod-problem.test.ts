import { type Pod, type PodTemplateSpec } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { podProblem } from "./pod-problem.ts";

const spec = (image: string) => ({
  containers: [{ name: "function", image, resources: { limits: { memory: "64Mi" } } }],
});
const template: PodTemplateSpec = { spec: spec("new") };

function podOf(status: object, more: object = {}, image = "new"): Pod {
  const container = {
    name: "function",
    image,
    imageID: "",
    ready: false,
    restartCount: 0,
    ...status,
  };
  return { metadata: {}, spec: spec(image), status: { containerStatuses: [container] }, ...more };
}

const crash = { exitCode: 1, reason: "Error", message: "at handler.js:1\nSyntaxError: no" };

describe("Pods that do not get ready", () => {
  test.each<[string, Pod, object | undefined]>([
    ["is starting", podOf({ state: { waiting: { reason: "ContainerCreating" } } }), undefined],
    ["runs and is not ready yet", podOf({ state: { running: {} } }), undefined],
    [
      "ended",
      podOf({ state: { terminated: crash } }),
      {
        fatal: true,
        message: "container function: Error (exit code 1): at handler.js:1\nSyntaxError: no",
      },
    ],
    [
      "ended often",
      podOf({
        restartCount: 3,
        state: { waiting: { reason: "CrashLoopBackOff" } },
        lastState: { terminated: crash },
      }),
      { message: expect.stringContaining("CrashLoopBackOff (exit code 1): at handler.js:1") },
    ],
    [
      "ends well, again and again",
      podOf({
        restartCount: 3,
        state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s restarting" } },
        lastState: { terminated: { exitCode: 0, reason: "Completed" } },
      }),
      {
        isCrash: true,
        message: "container function: CrashLoopBackOff (exit code 0): the process ended by itself",
      },
    ],
    [
      "is tried once more",
      podOf({ restartCount: 3, state: { running: {} }, lastState: { terminated: crash } }),
      { message: expect.stringContaining("CrashLoopBackOff (exit code 1): at handler.js:1") },
    ],
    [
      "is ready again",
      podOf({
        ready: true,
        restartCount: 3,
        state: { running: {} },
        lastState: { terminated: crash },
      }),
      undefined,
    ],
    [
      "filled its heap",
      podOf({
        state: {
          terminated: {
            exitCode: 134,
            message:
              "reading\n\n<--- Last few GCs --->\n\n[1:0x1]  9 ms: Mark-Compact 1 MB\nFATAL ERROR: JavaScript heap out of memory\n 1: 0x2 [node]",
          },
        },
      }),
      {
        message: expect.stringMatching(
          /Error \(out of memory, its limit is 64Mi: choose .*\): reading$/,
        ),
      },
    ],
    [
      "was out of memory",
      podOf({ restartCount: 1, state: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
      {
        message:
          "container function: CrashLoopBackOff (out of memory, its limit is 64Mi: choose a larger profile in spec.resourceConfiguration.function or in spry.yaml)",
      },
    ],
    [
      "has no image",
      podOf({ state: { waiting: { reason: "ErrImagePull", message: "404" } } }),
      { fatal: true, message: "container function: ImagePullBackOff: 404" },
    ],
    [
      "misses a Secret",
      podOf({
        state: {
          waiting: { reason: "CreateContainerConfigError", message: 'secret "x" not found' },
        },
      }),
      {
        fatal: true,
        message: 'container function: CreateContainerConfigError: secret "x" not found',
      },
    ],
    [
      "has no place",
      {
        ...podOf({ ready: true }),
        status: { conditions: [{ type: "PodScheduled", status: "False", message: "0/1 nodes" }] },
      },
      { fatal: false, message: "the Pod cannot be scheduled: 0/1 nodes" },
    ],
    [
      "was evicted",
      podOf(
        { state: { terminated: { exitCode: 137, reason: "Error" } } },
        {
          status: {
            phase: "Failed",
            reason: "Evicted",
            message: 'Usage of EmptyDir volume "tmp" exceeds the limit "1Mi". ',
          },
        },
      ),
      {
        fatal: true,
        message: 'Pod evicted: Usage of EmptyDir volume "tmp" exceeds the limit "1Mi".',
      },
    ],
    [
      "is going away",
      podOf(
        { state: { terminated: crash } },
        { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
      ),
      undefined,
    ],
    ["is of the old image", podOf({ state: { terminated: crash } }, {}, "old"), undefined],
  ])("one that %s", (_, pod, expected) => {
    const problem = podProblem([pod], template);
    if (expected) expect(problem).toMatchObject(expected);
    else expect(problem).toBeUndefined();
  });

  test("several: the one that waiting does not solve is reported", () => {
    const unplaced: Pod = {
      ...podOf({ ready: true }),
      status: { conditions: [{ type: "PodScheduled", status: "False", message: "0/1 nodes" }] },
    };
    const problem = podProblem([unplaced, podOf({ state: { terminated: crash } })], template);
    expect(problem?.message).toContain("SyntaxError");
  });
});
