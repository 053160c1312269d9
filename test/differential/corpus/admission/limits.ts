import { at, type Case, get, patch, post, put } from "../../step.ts";

/** A real server looks at its copy of the limits, which is a moment old. */
const settleMs = 300;
const ranges = at("v1", "limitranges");
const pods = at("v1", "pods");
const claims = at("v1", "persistentvolumeclaims");

const range = (...items: object[]) =>
  post(ranges, { metadata: { name: "limits" }, spec: { limits: items } });
const pod = (resources?: object, more: object = {}) => ({
  metadata: { name: "one" },
  spec: {
    automountServiceAccountToken: false,
    containers: [{ name: "a", image: "i", ...(resources && { resources }) }],
    ...more,
  },
});
const claim = (storage: string) => ({
  metadata: { name: "one" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
});
const sized = (requests?: object, limits?: object) => ({
  ...(requests && { requests }),
  ...(limits && { limits }),
});

const container = (item: object) => ({ type: "Container", ...item });
const enforced: [string, object[], object][] = [
  [
    "defaults",
    [container({ default: { cpu: "1", memory: "1Gi" }, defaultRequest: { cpu: "500m" } })],
    pod(),
  ],
  [
    "defaults next to what is given",
    [container({ default: { cpu: "1", memory: "1Gi" } })],
    pod(sized({ cpu: "100m" })),
  ],
  [
    "defaults of init containers",
    [container({ default: { cpu: "1" } })],
    pod(undefined, { initContainers: [{ name: "i", image: "i" }] }),
  ],
  ["min without a request", [{ type: "Pod", min: { cpu: "1" } }], pod()],
  ["min", [container({ min: { cpu: "500m" } })], pod(sized({ cpu: "100m" }, { cpu: "200m" }))],
  [
    "min of limits",
    [container({ min: { cpu: "500m" } })],
    pod(sized({ cpu: "600m" }, { cpu: "700m" })),
  ],
  [
    "max",
    [container({ max: { memory: "1Gi" } })],
    pod(sized({ memory: "2Gi" }, { memory: "2Gi" })),
  ],
  [
    "max given as requests",
    [container({ max: { memory: "1Gi" } })],
    pod(sized({ memory: "1.5Gi" })),
  ],
  ["max of a Pod without limits", [{ type: "Pod", max: { memory: "1Gi" } }], pod()],
  [
    "max of a Pod",
    [{ type: "Pod", max: { cpu: "1" } }],
    {
      metadata: { name: "one" },
      spec: {
        automountServiceAccountToken: false,
        containers: [
          { name: "a", image: "i", resources: sized(undefined, { cpu: "600m" }) },
          { name: "b", image: "i", resources: sized(undefined, { cpu: "600m" }) },
        ],
      },
    },
  ],
  [
    "max of a Pod with a large init container",
    [{ type: "Pod", max: { cpu: "1" } }],
    {
      metadata: { name: "one" },
      spec: {
        automountServiceAccountToken: false,
        initContainers: [{ name: "i", image: "i", resources: sized(undefined, { cpu: "2" }) }],
        containers: [{ name: "a", image: "i", resources: sized(undefined, { cpu: "600m" }) }],
      },
    },
  ],
  [
    "max of a Pod with a sidecar",
    [{ type: "Pod", max: { cpu: "1" } }],
    {
      metadata: { name: "one" },
      spec: {
        automountServiceAccountToken: false,
        initContainers: [
          {
            name: "s",
            image: "i",
            restartPolicy: "Always",
            resources: sized(undefined, { cpu: "600m" }),
          },
        ],
        containers: [{ name: "a", image: "i", resources: sized(undefined, { cpu: "600m" }) }],
      },
    },
  ],
  [
    "ratio",
    [container({ maxLimitRequestRatio: { cpu: "2" } })],
    pod(sized({ cpu: "100m" }, { cpu: "300m" })),
  ],
  [
    "ratio kept",
    [container({ maxLimitRequestRatio: { cpu: "3" } })],
    pod(sized({ cpu: "100m" }, { cpu: "300m" })),
  ],
  ["ratio without a request", [container({ maxLimitRequestRatio: { cpu: "2" } })], pod()],
  [
    "ratio without a limit",
    [container({ maxLimitRequestRatio: { cpu: "2" } })],
    pod(sized({ cpu: "1" })),
  ],
  [
    "two at once",
    [container({ max: { cpu: "1" } }), { type: "Pod", max: { cpu: "1" } }],
    pod(sized({ cpu: "2" }, { cpu: "2" })),
  ],
];

const items: [string, object[]][] = [
  [
    "defaults from max and min",
    [container({ max: { cpu: "2" }, min: { cpu: "1", memory: "1Mi" } })],
  ],
  ["type", [{ type: "Other" }]],
  ["no type", [{}]],
  ["type twice", [container({}), container({})]],
  ["default of a Pod", [{ type: "Pod", default: { cpu: "1" }, defaultRequest: { cpu: "1" } }]],
  ["claim without storage", [{ type: "PersistentVolumeClaim", max: { cpu: "1" } }]],
  ["min above max", [{ type: "Pod", min: { cpu: "2" }, max: { cpu: "1" } }]],
  [
    "default request above default",
    [container({ default: { cpu: "1" }, defaultRequest: { cpu: "2" } })],
  ],
  [
    "default request below min",
    [container({ min: { cpu: "3" }, defaultRequest: { cpu: "2" }, default: { cpu: "4" } })],
  ],
  [
    "default above max",
    [container({ max: { cpu: "1" }, default: { cpu: "2" }, defaultRequest: { cpu: "1" } })],
  ],
  ["ratio below 1", [{ type: "Pod", maxLimitRequestRatio: { cpu: "500m" } }]],
  [
    "ratio above max/min",
    [{ type: "Pod", min: { cpu: "1" }, max: { cpu: "2" }, maxLimitRequestRatio: { cpu: "3" } }],
  ],
  ["unknown resource", [{ type: "Pod", max: { nonsense: "1" } }]],
  ["storage of a Pod", [{ type: "Pod", max: { storage: "1" } }]],
  ["bad name", [{ type: "Pod", max: { "a b": "1" } }]],
];

export const limits: Case[] = [
  ...enforced.map(([name, list, object]): Case => ({
    name: `limits: ${name}`,
    steps: [range(...list), { ...post(pods, object), settleMs }, get(`${pods}/one`)],
  })),
  ...items.map(([name, list]): Case => ({ name: `limit range: ${name}`, steps: [range(...list)] })),
  {
    name: "limits of PersistentVolumeClaim",
    steps: [
      range({ type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } }),
      { ...post(claims, claim("1Mi")), settleMs },
      post(claims, claim("3Gi")),
      post(claims, claim("2Gi")),
      patch("merge", `${claims}/one`, { metadata: { labels: { a: "b" } } }),
    ],
  },
  {
    name: "limits change",
    steps: [
      range({ type: "Pod", max: { cpu: "1" } }),
      put(`${ranges}/limits`, {
        metadata: { name: "limits" },
        spec: { limits: [container({ default: { cpu: "2" } })] },
      }),
      { ...post(pods, pod()), settleMs },
      get(`${pods}/one`),
    ],
  },
];
