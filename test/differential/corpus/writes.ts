import { type Case, apply, at, get, patch, post, put, remove } from "../step.ts";
import { podSpec, sampleOf } from "./objects.ts";

const configMaps = at("v1", "configmaps");
const deployments = at("apps/v1", "deployments");
const pods = at("v1", "pods");
const one = `${configMaps}/one`;
const configMap = (rest: object = {}, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "one", ...metadata },
  ...rest,
});
const deployment = (rest: object = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "one" },
  ...rest,
});
const revisions = at("apps/v1", "controllerrevisions");
const revision = sampleOf("ControllerRevision").object;
const wholeDeployment = sampleOf("Deployment").object;

export const writes: Case[] = [
  {
    name: "generateName",
    steps: [
      post(configMaps, { metadata: { generateName: "some-" } }),
      post(configMaps, { metadata: {} }),
      post(configMaps, {}),
      post(`${configMaps}?dryRun=All`, { metadata: { generateName: "some-" } }),
      post(configMaps, { metadata: { generateName: "Some_" } }),
    ],
  },
  {
    name: "what a ControllerRevision holds never changes",
    steps: [
      post(revisions, revision),
      patch("merge", `${revisions}/one`, { revision: 4 }),
      patch("merge", `${revisions}/one`, { data: { image: "other" } }),
      patch("json", `${revisions}/one`, [{ op: "remove", path: "/data" }]),
      patch("strategic", `${revisions}/one`, { data: { more: [1, { a: null }] } }),
      put(`${revisions}/one`, { ...revision, data: { image: "other" }, revision: -1 }),
      patch("merge", `${revisions}/one`, { metadata: { labels: { a: "b" } } }),
      get(`${revisions}/one`),
    ],
  },
  {
    name: "dryRun",
    steps: [
      post(`${configMaps}?dryRun=All`, configMap()),
      get(one),
      post(`${configMaps}?dryRun=Some`, configMap()),
      post(configMaps, configMap()),
      put(`${one}?dryRun=All`, configMap({ data: { a: "1" } })),
      patch("merge", `${one}?dryRun=All`, { data: { a: "1" } }),
      patch("merge", `${one}?dryRun=Some`, { data: { a: "1" } }),
      remove(`${one}?dryRun=All`),
      remove(one, { dryRun: ["All"] }),
      remove(one, { dryRun: ["Some"] }),
      get(one),
    ],
  },
  {
    name: "field validation",
    steps: ["Strict", "Warn", "Ignore", "Some", ""].flatMap((mode) => [
      post(`${configMaps}?dryRun=All&fieldValidation=${mode}`, configMap({ dta: {}, metaata: 1 })),
      post(
        `${deployments}?dryRun=All&fieldValidation=${mode}`,
        deployment({
          ...wholeDeployment,
          spec: { ...(wholeDeployment.spec as object), replcas: 1 },
        }),
      ),
      post(
        `${configMaps}?dryRun=All&fieldValidation=${mode}`,
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"data":{"x":"1","x":"2"}}',
      ),
    ]),
  },
  {
    name: "update with optimistic concurrency",
    steps: [
      post(configMaps, configMap()),
      put(
        one,
        configMap({ data: { a: "1" } }, { resourceVersion: "{{0.metadata.resourceVersion}}" }),
      ),
      put(
        one,
        configMap({ data: { a: "2" } }, { resourceVersion: "{{0.metadata.resourceVersion}}" }),
      ),
      put(one, configMap({ data: { a: "3" } }, { resourceVersion: "abc" })),
      put(one, configMap({ data: { a: "3" } }, { resourceVersion: "0" })),
      put(one, configMap({ data: { a: "3" } }, { uid: "00000000-0000-4000-8000-000000000000" })),
      put(one, configMap({ data: { a: "3" } }, { namespace: "elsewhere" })),
      put(`${configMaps}/absent`, configMap({}, { name: "absent" })),
      put(`${configMaps}/absent`, configMap({}, { name: "absent", resourceVersion: "1" })),
      patch("merge", one, { metadata: { resourceVersion: "{{0.metadata.resourceVersion}}" } }),
      patch("merge", one, { metadata: { uid: "00000000-0000-4000-8000-000000000000" } }),
      patch("merge", one, { metadata: { name: "other" } }),
      patch("merge", `${configMaps}/absent`, { data: {} }),
      post(configMaps, configMap({}, { resourceVersion: "1" })),
      post(configMaps, configMap({}, { namespace: "elsewhere" })),
    ],
  },
  {
    name: "patches",
    steps: [
      post(configMaps, configMap({ data: { a: "1", b: "2" } })),
      patch("merge", one, { data: { a: null, c: "3" } }),
      patch("merge", one, { data: { a: 1 } }),
      patch("merge", one, { unknown: true }),
      patch("merge", `${one}?fieldValidation=Strict`, { unknown: true }),
      patch("merge", one, "[]"),
      patch("merge", one, "{"),
      patch("merge", one, "null"),
      patch("strategic", one, { data: { $patch: "replace", z: "1" } }),
      patch("strategic", one, { data: { $patch: "nonsense" } }),
      patch("json", one, [{ op: "replace", path: "/data/z", value: "2" }]),
      patch("json", one, [{ op: "test", path: "/data/z", value: "9" }]),
      patch("json", one, [{ op: "remove", path: "/data/absent" }]),
      patch("json", one, [{ op: "replace", path: "/data/absent", value: "1" }]),
      patch("json", one, [{ op: "move", from: "/data/z", path: "/data/y" }]),
      patch("json", one, [{ op: "copy", from: "/data/y", path: "/data/x" }]),
      patch("json", one, [{ op: "nonsense", path: "/data" }]),
      patch("json", one, [{ op: "add", path: "data", value: 1 }]),
      patch("json", one, [{ op: "add", path: "/data/q~1r", value: "1" }]),
      patch("json", one, {}),
      patch("json", one, "["),
      { method: "PATCH", path: one, body: {}, headers: { "content-type": "application/json" } },
      { method: "PATCH", path: one, body: {}, headers: { "content-type": "text/plain" } },
      get(one),
    ],
  },
  {
    name: "strategic merge patches of a Deployment",
    steps: [
      post(deployments, wholeDeployment),
      patch("strategic", `${deployments}/one`, {
        spec: {
          template: { spec: { containers: [{ name: "main", env: [{ name: "A", value: "1" }] }] } },
        },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: {
          template: { spec: { containers: [{ name: "main", env: [{ name: "B", value: "2" }] }] } },
        },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: {
          template: {
            spec: {
              containers: [
                {
                  name: "main",
                  env: [{ name: "A", $patch: "delete" }],
                  "$setElementOrder/env": [{ name: "B" }],
                },
              ],
            },
          },
        },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: {
          template: {
            spec: {
              containers: [{ name: "second", image: "example.invalid/second" }],
              "$setElementOrder/containers": [{ name: "second" }, { name: "main" }],
            },
          },
        },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: { template: { spec: { containers: [{ name: "second", $patch: "delete" }] } } },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } },
      }),
      patch("strategic", `${deployments}/one`, {
        spec: { template: { spec: { containers: [{ image: "x" }] } } },
      }),
      patch("strategic", `${deployments}/one`, { spec: { replicas: "three" } }),
      patch("merge", `${deployments}/one`, { spec: { replicas: -1 } }),
      patch("merge", `${deployments}/one`, { spec: { selector: { matchLabels: { app: "two" } } } }),
      patch("merge", `${deployments}/one`, { spec: { replicas: null, paused: true } }),
      patch("json", `${deployments}/one`, [
        { op: "remove", path: "/spec/template/spec/containers/0" },
      ]),
      get(`${deployments}/one`),
    ],
  },
  {
    name: "server-side apply",
    steps: [
      apply("one", one, configMap({ data: { a: "1", b: "1" } })),
      apply("one", one, configMap({ data: { a: "1", b: "1" } })),
      apply("two", one, configMap({ data: { a: "2", c: "2" } })),
      apply("two", one, configMap({ data: { a: "1", c: "2" } })),
      apply("two", one, configMap({ data: { a: "2", c: "2" } }), "&force=true"),
      apply("one", one, configMap({ data: { b: "1" } })),
      apply("one", one, configMap({ data: {} })),
      apply("two", one, configMap({})),
      apply("", one, configMap({})),
      apply("two", one, configMap({}, { managedFields: [] })),
      apply("two", one, configMap({}, { name: "another" })),
      apply("two", one, { metadata: { name: "one" } }),
      apply("two", one, { apiVersion: "v1", kind: "Secret", metadata: { name: "one" } }),
      apply("two", one, { apiVersion: "v2", kind: "ConfigMap", metadata: { name: "one" } }),
      apply("two", one, configMap({ dta: {} })),
      apply("two", one, configMap({ data: [] })),
      apply("two", one, "a: [", ""),
      apply("two", one, "- a", ""),
      apply(
        "two",
        one,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  yaml: 'yes'\n",
      ),
      apply("two", one, configMap({}, { resourceVersion: "1" })),
      apply("two", `${configMaps}/fresh`, configMap({}, { name: "fresh", resourceVersion: "1" })),
      patch("merge", `${one}?force=true`, {}),
      put(one, configMap({ data: { mine: "1" } })),
      apply("one", one, configMap({ data: { mine: "2" } })),
      patch("merge", one, { metadata: { managedFields: [{}] } }),
      get(one),
    ],
  },
  {
    name: "server-side apply of a Deployment",
    steps: [
      apply("one", `${deployments}/one`, wholeDeployment),
      apply(
        "two",
        `${deployments}/one`,
        deployment({
          spec: { replicas: 3, template: { spec: { containers: [{ name: "main", image: "x" }] } } },
        }),
      ),
      apply(
        "two",
        `${deployments}/one`,
        deployment({
          spec: {
            replicas: 3,
            template: {
              spec: { containers: [{ name: "side", image: "x", ports: [{ containerPort: 1 }] }] },
            },
          },
        }),
      ),
      apply("three", `${deployments}/one`, deployment({ spec: { replicas: 4 } })),
      apply("two", `${deployments}/one`, deployment({ spec: { replicas: 3 } })),
      patch("merge", `${deployments}/one`, { spec: { replicas: 7 } }),
      apply("two", `${deployments}/one`, deployment({})),
      patch("merge", `${deployments}/one/scale`, { spec: { replicas: 2 } }),
      put(`${deployments}/one/scale`, {
        apiVersion: "autoscaling/v1",
        kind: "Scale",
        metadata: { name: "one", namespace: "$ns" },
        spec: { replicas: 0 },
      }),
      put(`${deployments}/one/scale`, { metadata: { name: "one" }, spec: { replicas: -1 } }),
      patch("merge", `${deployments}/one/scale`, { spec: { replicas: "a" } }),
      get(`${deployments}/one/scale`),
      patch("merge", `${deployments}/one/status`, { status: { replicas: 2, readyReplicas: 1 } }),
      patch("merge", `${deployments}/one/status`, { spec: { replicas: 9 } }),
      patch("merge", `${deployments}/one/status`, { status: { replicas: -2 } }),
      get(`${deployments}/one`),
    ],
  },
  {
    name: "finalizers",
    steps: [
      post(configMaps, configMap({}, { finalizers: ["spry.invalid/hold"] })),
      remove(one),
      remove(one),
      patch("merge", one, { metadata: { labels: { still: "here" } } }),
      patch("merge", one, { metadata: { finalizers: ["spry.invalid/hold", "spry.invalid/more"] } }),
      post(configMaps, configMap()),
      patch("merge", one, { metadata: { finalizers: null } }),
      get(one),
      post(configMaps, configMap({}, { finalizers: ["unqualified"] })),
    ],
  },
  {
    name: "deletion policies",
    steps: ["Background", "Foreground", "Orphan", "Nonsense"].flatMap((policy, index) => [
      post(deployments, { ...wholeDeployment, metadata: { name: `d${index}` } }),
      remove(`${deployments}/d${index}`, { propagationPolicy: policy }),
      get(`${deployments}/d${index}`),
    ]),
  },
  {
    name: "deletion options",
    steps: [
      post(configMaps, configMap()),
      remove(one, { preconditions: { resourceVersion: "1" } }),
      remove(one, { orphanDependents: true, propagationPolicy: "Background" }),
      remove(`${one}?propagationPolicy=Foreground`),
      remove(`${one}?gracePeriodSeconds=x`),
      remove(one, { gracePeriodSeconds: -1 }),
      remove(one, "{"),
      remove(one, { kind: "Other", apiVersion: "v1" }),
      post(pods, sampleOf("Pod").object),
      remove(`${pods}/one?gracePeriodSeconds=5`),
      get(`${pods}/one`),
      remove(`${pods}/one`, { gracePeriodSeconds: 0 }),
      remove(`${configMaps}?labelSelector=a=b`),
      remove(at("v1", "pods")),
    ],
  },
  {
    name: "a Pod's subresources",
    steps: [
      post(pods, sampleOf("Pod").object),
      post(`${pods}/one/binding`, { target: { kind: "Node", name: "node" } }),
      post(`${pods}/one/binding`, { metadata: { name: "one" }, target: { kind: "Pod" } }),
      post(`${pods}/one/binding`, { metadata: { name: "one" }, target: {} }),
      post(`${pods}/absent/binding`, { metadata: { name: "absent" }, target: { name: "node" } }),
      post(`${pods}/one/binding`, {
        metadata: { name: "one", annotations: { by: "hand" } },
        target: { kind: "Node", name: "node" },
      }),
      post(`${pods}/one/binding`, {
        metadata: { name: "one" },
        target: { kind: "Node", name: "node" },
      }),
      get(`${pods}/one`),
      patch("strategic", `${pods}/one/status`, {
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: "True" }],
          podIP: "10.0.0.5",
          podIPs: [{ ip: "10.0.0.5" }],
        },
      }),
      patch("strategic", `${pods}/one`, {
        spec: { containers: [{ name: "main", image: "other" }] },
      }),
      patch("strategic", `${pods}/one`, {
        spec: { containers: [{ name: "main", command: ["x"] }] },
      }),
      patch("merge", `${pods}/one`, { spec: { nodeName: "elsewhere" } }),
      post(`${pods}/one/eviction`, {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name: "one", namespace: "$ns" },
      }),
      get(`${pods}/one`),
      get(`${pods}/one/log?container=absent`),
      post(pods, {
        ...sampleOf("Pod").object,
        metadata: { name: "two" },
        spec: { ...podSpec, serviceAccountName: "absent" },
      }),
    ],
  },
  {
    name: "ephemeral containers",
    steps: [
      post(pods, sampleOf("Pod").object),
      patch("merge", `${pods}/one/ephemeralcontainers`, {
        spec: { ephemeralContainers: [{ name: "debug", image: "x" }] },
      }),
    ],
  },
  {
    name: "immutable data",
    steps: [
      post(configMaps, configMap({ immutable: true, data: { a: "1" } })),
      patch("merge", one, { data: { a: "2" } }),
      patch("merge", one, { immutable: false }),
      patch("merge", one, { metadata: { labels: { a: "b" } } }),
      post(at("v1", "secrets"), {
        metadata: { name: "s" },
        type: "kubernetes.io/dockerconfigjson",
        data: {},
      }),
      post(at("v1", "secrets"), {
        metadata: { name: "s" },
        type: "kubernetes.io/tls",
        data: { a: "!" },
      }),
      post(at("v1", "secrets"), { metadata: { name: "s" }, immutable: true, data: { a: "YQ==" } }),
      patch("merge", `${at("v1", "secrets")}/s`, { data: { a: "Yg==" } }),
      patch("merge", `${at("v1", "secrets")}/s`, { type: "other" }),
    ],
  },
  {
    name: "namespaces",
    steps: [
      get("/api/v1/namespaces/$ns"),
      get("/api/v1/namespaces/absent"),
      post("/api/v1/namespaces/absent/configmaps", configMap()),
      get("/api/v1/namespaces/absent/configmaps"),
      post("/api/v1/namespaces", { metadata: { name: "Bad_Name" } }),
      post("/api/v1/namespaces", { metadata: { name: "a.b" } }),
      post("/api/v1/namespaces", { metadata: { name: "$ns" } }),
      remove("/api/v1/namespaces/$ns"),
      post(configMaps, configMap()),
      get("/api/v1/namespaces/$ns"),
      remove("/api/v1/namespaces/default"),
      put("/api/v1/namespaces/$ns/finalize", {
        metadata: { name: "$ns" },
        spec: { finalizers: ["kubernetes"] },
      }),
    ],
  },
];
