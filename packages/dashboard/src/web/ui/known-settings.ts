/** What the settings of the platform are about, in the order in which operators need them (docs/compatibility.md#serverless-object). */
export const knownSettings: readonly [field: string, what: string, example: string][] = [
  [
    "functionBuildMaxSimultaneousJobs",
    "how many builds run at a time; the others wait in the queue",
    '"5"',
  ],
  ["defaultBuildJobPreset", "CPU and memory of a build", "normal"],
  ["defaultRuntimePodPreset", "CPU and memory of a Function’s instance", "M"],
  [
    "defaultScaleConfig",
    "instances of new Functions; with minReplicas: 0 on demand",
    "{ minReplicas: 0, maxReplicas: 5 }",
  ],
  ["functionHistoryLimit", "how many versions of each Function are kept", '"10"'],
  [
    "tracing",
    "where Functions send spans, by OTLP over HTTP",
    '{ endpoint: "http://collector:4318" }',
  ],
  ["eventing", "where Functions publish events", '{ endpoint: "http://publisher/publish" }'],
  [
    "dockerRegistry",
    "a registry of your own, by the name of its Secret",
    "{ enableInternal: false, secretName: my-registry }",
  ],
  [
    "gitAllowedAddresses",
    "Git servers in this network that sources may come from",
    '["10.1.2.0/24"]',
  ],
  ["enableNetworkPolicies", "whether Functions and builds get network policies", "true"],
  ["logLevel", "how much the platform’s own log has", "info"],
];
