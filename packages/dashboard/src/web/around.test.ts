/** What the views around Functions make of the objects that they show. */
import { type Function, type FunctionRevision, labels } from "@spry/function";
import { type Job } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { buildLimitOf, buildQueue, buildsText } from "./state/build-queue.ts";
import { bytesText, knownRepositories, reportedRepositories } from "./state/registry.ts";

const waiting = (namespace: string, name: string, second: number, message?: string): Function => ({
  metadata: { namespace, name },
  spec: { source: { inline: { source: "" } } },
  status: {
    conditions: [
      {
        type: "BuildReady",
        status: "Unknown",
        reason: "JobWaiting",
        message: message ?? "waiting for a free build slot: at most 2 builds run at a time",
        lastTransitionTime: `2026-01-01T00:00:0${second}Z`,
      },
    ],
  },
});
const job = (namespace: string, second: number, isFinished = false): Job => ({
  metadata: {
    namespace,
    name: `${namespace}-${second}`,
    labels: { [labels.functionName]: "x" },
    creationTimestamp: `2026-01-01T00:00:0${second}Z`,
  },
  spec: { template: { spec: { containers: [] } } },
  ...(isFinished && { status: { conditions: [{ type: "Complete", status: "True" }] } }),
});

describe("the queue of builds", () => {
  test("is in the controller's order: namespaces take turns, and within one the first comes first", () => {
    const functions = [
      waiting("a", "a2", 2),
      waiting("a", "a1", 1),
      waiting("b", "b1", 3),
      waiting("c", "c1", 4),
    ];
    // One of a's is being built, c has had its last turn before b.
    const jobs = [job("a", 1), job("c", 2, true), job("b", 3, true)];
    const names = buildQueue(functions, jobs).map(({ name }) => name);
    expect(names).toEqual(["c1", "b1", "a1", "a2"]);
    expect(buildLimitOf(functions)).toBe(2);
  });

  test("has only those that wait for other builds", () => {
    const other = waiting("a", "a1", 1, "waiting for ServiceAccount serverless in namespace a");
    expect(buildQueue([other], [])).toEqual([]);
    expect(buildLimitOf([other])).toBeUndefined();
  });
});

describe("the registry", () => {
  const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
  const revision = (number: number, letter: string): FunctionRevision => ({
    metadata: { namespace: "shop", name: `fn-${number}`, labels: { [labels.functionName]: "fn" } },
    revision: number,
    data: {
      spec: { source: {} },
      image: `registry.example/shop/fn@${digest(letter)}`,
      buildKey: "k",
      time: "2026-01-01T00:00:00Z",
    },
  });
  const history = [revision(1, "a"), revision(2, "b"), revision(3, "a")];

  test("says for which versions of which Function an image is kept", () => {
    const image = (letter: string, reason: "used" | "previous" | null) => ({
      digest: digest(letter),
      tags: [],
      bytes: 10,
      usedAt: "2026-01-01T00:00:00Z",
      reason,
    });
    const [shown] = reportedRepositories(
      {
        stored: 10,
        quota: 100,
        previousImages: 3,
        cacheMaxAgeMs: 30 * 86_400_000,
        repositories: [
          {
            name: "shop/fn",
            kind: "function",
            bytes: 30,
            images: [image("a", "used"), image("c", "previous"), image("d", null)],
            imageCount: 5,
          },
        ],
      },
      history,
    );
    expect(shown).toMatchObject({ owner: { namespace: "shop", name: "fn" }, more: 2 });
    expect(shown?.images.map(({ why }) => why)).toEqual([
      "versions 3, 1 in the history",
      "one of the last 3: kept while there is room",
      "not needed: removed by the next cleaning",
    ]);
  });

  test("without a report has the images of the histories", () => {
    expect(knownRepositories(history)).toMatchObject([
      { name: "shop/fn", bytes: null, images: [{ digest: digest("a") }, { digest: digest("b") }] },
    ]);
  });

  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [5.25 * 1024 ** 3, "5.3 GiB"],
  ])("%i bytes are %s", (bytes, text) => expect(bytesText(bytes)).toBe(text));
});

test("builds that wait are not counted as running", () => {
  const withStatus = (status: Job["status"]): Job => ({
    ...job("a", 1),
    ...(status && { status }),
  });
  const ended = (type: string) => withStatus({ conditions: [{ type, status: "True" }] });
  const jobs = [
    withStatus({ active: 1 }),
    withStatus(undefined),
    withStatus({ conditions: [{ type: "Suspended", status: "True" }] }),
    ended("Complete"),
    ended("Failed"),
  ];
  const queue = buildQueue([waiting("a", "slow", 1)], jobs);
  expect(buildsText(jobs, queue)).toBe("1 running, 3 waiting, 1 failed");
});
