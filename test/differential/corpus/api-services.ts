/** APIServices that are refused. Nothing is stored: the groups of other cases stay as they are. */
import { type Case, post } from "../step.ts";

const group = "$ns.example.com";

const apiService = (spec: object, name = `v1.${group}`) => ({
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name },
  spec: {
    group,
    version: "v1",
    groupPriorityMinimum: 100,
    versionPriority: 10,
    service: { namespace: "$ns", name: "missing" },
    insecureSkipTLSVerify: true,
    ...spec,
  },
});

const mistakes: [spec: object, name?: string][] = [
  [{}, `v2.${group}`],
  [{}, "Bad_Name"],
  [{ groupPriorityMinimum: 0 }],
  [{ groupPriorityMinimum: 20_001 }],
  [{ versionPriority: 0 }],
  [{ versionPriority: 1001 }],
  [{ service: { namespace: "", name: "" } }],
  [{ service: { namespace: "$ns", name: "missing", port: 70_000 } }],
  [{ service: null }],
];

export const registrations: Case[] = [
  {
    name: "APIService: mistakes",
    steps: mistakes.map((one) =>
      post("/apis/apiregistration.k8s.io/v1/apiservices?dryRun=All", apiService(...one)),
    ),
  },
];
