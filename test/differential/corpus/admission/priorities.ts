import { at, type Case, patch, post, remove } from "../../step.ts";

const classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
const pods = at("v1", "pods");
const settleMs = 300;

const priorityClass = (name: string, more: object) =>
  post(classes, { metadata: { name }, ...more });
const pod = (spec: object) =>
  post(`${pods}?dryRun=All`, {
    metadata: { name: "one" },
    spec: { automountServiceAccountToken: false, containers: [{ name: "a", image: "i" }], ...spec },
  });

export const priorities: Case[] = [
  {
    name: "priorities of Pods",
    steps: [
      priorityClass("$ns-high", { value: 1000, description: "d" }),
      priorityClass("$ns-never", { value: 10, preemptionPolicy: "Never" }),
      { ...pod({ priorityClassName: "$ns-high" }), settleMs },
      pod({ priorityClassName: "$ns-never" }),
      pod({ priorityClassName: "$ns-never", preemptionPolicy: "PreemptLowerPriority" }),
      pod({ priorityClassName: "$ns-high", priority: 5 }),
      pod({ priorityClassName: "$ns-high", priority: 1000 }),
      pod({ priorityClassName: "absent" }),
      pod({ priority: 5 }),
      pod({ preemptionPolicy: "Never" }),
      pod({}),
      patch("merge", `${classes}/$ns-high`, { value: 5 }),
      patch("merge", `${classes}/$ns-high`, { preemptionPolicy: "Never" }),
      patch("merge", `${classes}/$ns-high`, { description: "e" }),
      remove(`${classes}/$ns-high`),
      remove(`${classes}/$ns-never`),
    ],
  },
  {
    name: "priorities of the system",
    steps: [pod({ priorityClassName: "system-node-critical" })],
  },
  {
    name: "priority classes",
    steps: [
      priorityClass("$ns-a", { value: 1_000_000_001 }),
      priorityClass("system-mine", { value: 1 }),
      priorityClass("$ns-a", { value: 1, preemptionPolicy: "X" }),
      priorityClass("$ns-a", {}),
      remove(`${classes}/$ns-a`),
    ],
  },
];
