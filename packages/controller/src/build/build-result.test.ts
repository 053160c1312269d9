import { describe, expect, test } from "vitest";
import { buildResult } from "./build-result.ts";
import { buildPodOf, digest, jobOf } from "../testing/objects.ts";

const ended = (exitCode: number, message = "", reason = "Error") => ({
  terminated: { exitCode, message, reason },
});
const complete = [{ type: "Complete", status: "True" }];
const failed = [{ type: "Failed", status: "True", reason: "BackoffLimitExceeded" }];
const late = [{ type: "Failed", status: "True", reason: "DeadlineExceeded" }];

describe("a build", () => {
  test.each([
    ["has only begun", jobOf(), [], { kind: "running" }],
    [
      "has a Pod that starts",
      jobOf(),
      [buildPodOf({ waiting: { reason: "ContainerCreating" } })],
      { kind: "running" },
    ],
    [
      "cannot pull its image",
      jobOf(),
      [buildPodOf({ waiting: { reason: "ImagePullBackOff", message: "no" } })],
      { kind: "running", detail: "ImagePullBackOff: no" },
    ],
    [
      "succeeded",
      jobOf(),
      [buildPodOf(ended(0, `{"image":"push/x@${digest}"}`))],
      { kind: "succeeded", digest },
    ],
    [
      "succeeded without all of the source",
      jobOf(),
      [buildPodOf(ended(0, `{"image":"push/x@${digest}","leftOut":["submodule \\"lib\\""]}`))],
      { kind: "succeeded", digest, leftOut: ['submodule "lib"'] },
    ],
    [
      "succeeded, and the Job knows",
      jobOf(complete),
      [buildPodOf(ended(0, `{"image":"push/x@${digest}"}`))],
      { kind: "succeeded", digest },
    ],
    [
      "reported no digest",
      jobOf(),
      [buildPodOf(ended(0, `{"image":"push/x:tag"}`))],
      { kind: "broke", message: "build succeeded but reported no image digest" },
    ],
    ["reported no JSON", jobOf(), [buildPodOf(ended(0, "done"))], { kind: "broke" }],
    ["reported null", jobOf(), [buildPodOf(ended(0, "null"))], { kind: "broke" }],
    [
      "was refused",
      jobOf(failed),
      [buildPodOf(ended(1, "npm error 404 no-such"))],
      { kind: "refused", message: "npm error 404 no-such" },
    ],
    [
      "was refused without a word",
      jobOf(),
      [buildPodOf(ended(1))],
      { kind: "refused", message: "the builder reported no reason" },
    ],
    [
      "broke",
      jobOf(failed),
      [buildPodOf(ended(2, "registry: ECONNREFUSED"))],
      { kind: "broke", message: "registry: ECONNREFUSED" },
    ],
    [
      "ran out of memory",
      jobOf(failed),
      [buildPodOf(ended(137, "", "OOMKilled"))],
      {
        kind: "broke",
        message:
          "build ran out of memory, its limit is 64Mi: choose a larger profile in spec.resourceConfiguration.build",
      },
    ],
    [
      "ran out of memory in the middle of its work",
      jobOf(failed),
      [buildPodOf(ended(137, "added 12 packages", "OOMKilled"))],
      { kind: "broke", message: expect.stringMatching(/out of memory.*: added 12 packages$/) },
    ],
    [
      "took too long",
      { ...jobOf(late), spec: { template: {}, activeDeadlineSeconds: 900 } },
      [],
      { kind: "broke", message: "build exceeded its time limit (900 s)" },
    ],
    [
      "was evicted",
      jobOf(),
      [buildPodOf(undefined, "Failed")],
      { kind: "broke", message: "the build Pod failed" },
    ],
    [
      "is over, but its Pod has yet to say so",
      jobOf(failed),
      [buildPodOf({ running: {} })],
      { kind: "running" },
    ],
    ["is over, and its Pod gone", jobOf(complete), [], { kind: "broke" }],
    [
      "has the Pod of another Job",
      { ...jobOf(), metadata: { name: "x", uid: "other" } },
      [buildPodOf(ended(1))],
      { kind: "running" },
    ],
  ])("that %s", (_, job, pods, expected) => expect(buildResult(job, pods)).toMatchObject(expected));

  describe.each(["repo-fetcher", "dependency-fetcher", "script-runner"])("whose %s", (name) => {
    const fetching = (
      state: object,
      builder: object = { waiting: { reason: "PodInitializing" } },
    ) => {
      const pod = buildPodOf(builder, "Pending");
      const status = {
        name,
        image: "",
        imageID: "",
        ready: false,
        restartCount: 0,
      };
      return { ...pod, status: { ...pod.status, initContainerStatuses: [{ ...status, state }] } };
    };
    test.each<[string, object, object | undefined, object]>([
      ["is being fetched", { running: {} }, undefined, { kind: "running", started: false }],
      [
        "waits for an image",
        { waiting: { reason: "ImagePullBackOff", message: "no such image" } },
        undefined,
        { kind: "running", detail: "ImagePullBackOff: no such image" },
      ],
      [
        "has a wrong folder",
        ended(1, "no baseDir"),
        undefined,
        { kind: "refused", message: "no baseDir" },
      ],
      [
        "cannot be reached",
        ended(2, "no server"),
        undefined,
        { kind: "broke", message: "no server" },
      ],
      ["is there, and is built", ended(0), { running: {} }, { kind: "running", started: false }],
      [
        "is there, and wrong",
        ended(0),
        ended(1, "no code"),
        { kind: "refused", message: "no code" },
      ],
    ])("which %s", (_, fetcher, builder, expected) =>
      expect(buildResult(jobOf(), [fetching(fetcher, builder)])).toMatchObject(expected),
    );
  });

  test("that wrote much is reported by its end, in whole lines", () => {
    const output = Array.from({ length: 500 }, (_, line) => `line ${line}`).join("\n");
    const result = buildResult(jobOf(), [buildPodOf(ended(1, output))]);
    const message = result.kind === "refused" ? result.message : "";
    expect(message.length).toBeLessThanOrEqual(1025);
    expect(message).toMatch(/^…\nline \d+\n/);
    expect(message).toMatch(/line 499$/);
  });
});
