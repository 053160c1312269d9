import { type Sequence } from "../sequence.ts";
import { create, fail, quietMs, ready, set, succeed } from "./job-steps.ts";

export const indexedJobs: Sequence[] = [
  {
    name: "Indexed Job",
    quietMs,
    steps: [
      create({ completionMode: "Indexed", completions: 4, parallelism: 3 }),
      succeed(1, { index: 2 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 1 }),
      succeed(1, { index: 3 }),
    ],
  },
  {
    name: "Indexed Job with tries per index",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        backoffLimitPerIndex: 0,
      }),
      fail(1, { index: 1 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 2 }),
    ],
  },
  {
    name: "Indexed Job with too many failed indexes",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 4,
        parallelism: 4,
        backoffLimitPerIndex: 0,
        maxFailedIndexes: 1,
      }),
      fail(1, { index: 3 }),
      fail(1, { index: 1 }),
    ],
  },
  {
    name: "another try of an index",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 2,
        parallelism: 2,
        backoffLimitPerIndex: 1,
      }),
      fail(1, { index: 0 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "FailIndex",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 2,
        parallelism: 2,
        backoffLimitPerIndex: 3,
        podFailurePolicy: {
          rules: [{ action: "FailIndex", onExitCodes: { operator: "In", values: [7] } }],
        },
      }),
      fail(1, { index: 0 }, 7),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "successPolicy of the leader",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        successPolicy: { rules: [{ succeededIndexes: "0" }] },
      }),
      ready(3),
      succeed(1, { index: 0, phase: "Running" }),
    ],
  },
  {
    name: "successPolicy by count",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        successPolicy: { rules: [{ succeededCount: 2 }] },
      }),
      succeed(1, { index: 2 }),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "elastic Indexed Job",
    quietMs,
    steps: [
      create({ completionMode: "Indexed", completions: 2, parallelism: 2 }),
      set({ completions: 3, parallelism: 3 }),
      succeed(3),
    ],
  },
];
