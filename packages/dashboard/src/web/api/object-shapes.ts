/** What views read of objects. API servers keep to their schemas; a proxy, or a definition that others have changed, may not. */
import { fitted, type Shape } from "../state/shape.ts";

const texts: Shape = { "*": "text" };
const conditions: Shape = [
  {
    "type!": "text",
    "status!": "text",
    reason: "text",
    message: "text",
    lastTransitionTime: "text",
  },
];

export const metadataShape = {
  name: "text",
  namespace: "text",
  uid: "text",
  resourceVersion: "text",
  generation: "number",
  creationTimestamp: "text",
  deletionTimestamp: "text",
  labels: texts,
  annotations: texts,
  ownerReferences: [{ "kind!": "text", "name!": "text", "uid!": "text", controller: "flag" }],
} as const satisfies Shape;

const resourcesShape: Shape = { limits: { "*": "any" }, requests: { "*": "any" } };
const profile: Shape = { profile: "text", resources: resourcesShape };
const keyRef: Shape = { name: "text", "key!": "text" };

/** Of a Function, also in drafts and in the history. */
export const specShape = {
  runtime: "text",
  "source!": {
    inline: { "source!": "text", dependencies: "text" },
    gitRepository: {
      "url!": "text",
      "reference!": "text",
      "baseDir!": "text",
      auth: { "type!": "text", "secretName!": "text" },
    },
    image: "text",
  },
  env: [
    {
      "name!": "text",
      value: "text",
      valueFrom: { secretKeyRef: keyRef, configMapKeyRef: keyRef, "*": { "*": "any" } },
    },
  ],
  resourceConfiguration: { function: profile, build: profile },
  scaleConfig: { "minReplicas!": "number", "maxReplicas!": "number" },
  concurrency: { target: "number", limit: "number" },
  timeoutSeconds: "number",
  traffic: [{ revision: "number", latest: "flag", percent: "number", tag: "text" }],
  schedules: [{ "name!": "text", "cron!": "text", timeZone: "text", suspend: "flag" }],
  replicas: "number",
  secretMounts: [{ "secretName!": "text", "mountPath!": "text" }],
  labels: texts,
  annotations: texts,
  template: { labels: texts, annotations: texts },
} as const satisfies Shape;

const containers: Shape = [
  { "name!": "text", image: "text", env: [{ "name!": "text", value: "text" }] },
];
const containerState: Shape = {
  running: { startedAt: "text" },
  waiting: { reason: "text", message: "text" },
  terminated: { reason: "text", message: "text", exitCode: "number", finishedAt: "text" },
};

/** By the plural of the resource. */
const shapes: Record<string, Shape> = {
  functions: {
    "metadata!": metadataShape,
    "spec!": specShape,
    status: {
      conditions: [
        {
          "type!": "text",
          "status!": "text",
          "reason!": "text",
          "message!": "text",
          lastTransitionTime: "text",
        },
      ],
      observedGeneration: "number",
      runtime: "text",
      commit: "text",
      replicas: "number",
      build: { "key!": "text", image: "text", failures: "number", retryAfter: "text" },
      revision: "number",
    },
  },
  controllerrevisions: {
    "metadata!": metadataShape,
    "revision!": "number",
    "data!": {
      "spec!": specShape,
      "image!": "text",
      "time!": "text",
      author: "text",
      commit: "text",
      rebuild: "text",
    },
  },
  pods: {
    "metadata!": metadataShape,
    spec: { "containers!": containers, nodeName: "text" },
    status: {
      phase: "text",
      conditions,
      containerStatuses: [
        {
          "name!": "text",
          "restartCount!": "number",
          state: containerState,
          lastState: containerState,
        },
      ],
    },
  },
  jobs: {
    "metadata!": metadataShape,
    status: { conditions, active: "number", startTime: "text", completionTime: "text" },
  },
  events: {
    "metadata!": metadataShape,
    type: "text",
    reason: "text",
    message: "text",
    lastTimestamp: "text",
  },
  nodes: {
    "metadata!": metadataShape,
    status: {
      capacity: texts,
      conditions,
      nodeInfo: {
        kubeletVersion: "text",
        containerRuntimeVersion: "text",
        osImage: "text",
        architecture: "text",
      },
    },
  },
  apirules: {
    "metadata!": metadataShape,
    "spec!": {
      hosts: ["text"],
      gateway: "text",
      service: { name: "text", namespace: "text", port: "number" },
      rules: [
        {
          "path!": "text",
          noAuth: "flag",
          jwt: { "*": "any" },
          service: { name: "text", namespace: "text" },
        },
      ],
    },
    status: { state: "text", description: "text" },
  },
  subscriptions: {
    "metadata!": metadataShape,
    "spec!": { "sink!": "text", source: "text", typeMatching: "text", "types!": ["text"] },
    status: { ready: "flag", conditions },
  },
  gateways: {
    "metadata!": metadataShape,
    spec: { servers: [{ hosts: ["text"] }] },
  },
  serverlesses: {
    "metadata!": metadataShape,
    spec: { "*": "any" },
    status: { state: "text", conditions, "*": "any" },
  },
};
const anyObject: Shape = { "metadata!": metadataShape };

/** An object as the views can read it. */
export const readable = <T>(plural: string, object: T): T =>
  fitted<T>(shapes[plural] ?? anyObject, object);
