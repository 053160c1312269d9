/** The vocabularies of the three servers: what a client says to them, for requests that are nearly right. */
import { type Vocabulary } from "./requests.ts";

const json = "application/json";
const patches = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

export function apiWords(token: string): Vocabulary {
  const as = `localhost\r\nauthorization: Bearer ${token}`;
  const core = "/api/v1/namespaces/fuzz";
  const bodies = apiBodies();
  const collections: Record<string, string> = {
    ConfigMap: `${core}/configmaps`,
    Secret: `${core}/secrets`,
    Service: `${core}/services`,
    Pod: `${core}/pods`,
    Deployment: "/apis/apps/v1/namespaces/fuzz/deployments",
    Job: "/apis/batch/v1/namespaces/fuzz/jobs",
    Function: "/apis/serverless.kyma-project.io/v1alpha2/namespaces/fuzz/functions",
    HorizontalPodAutoscaler: "/apis/autoscaling/v2/namespaces/fuzz/horizontalpodautoscalers",
    SelfSubjectAccessReview: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    TokenRequest: `${core}/serviceaccounts/tenant/token`,
  };
  const fitting = bodies.flatMap((body): [string, unknown][] => {
    const collection = collections[(body as { kind?: string }).kind ?? ""];
    return collection
      ? [
          [collection, body],
          [`${collection}/f`, body],
        ]
      : [];
  });
  return {
    fitting,
    hosts: [as, as, as, as, "localhost", "", "evil.example"],
    paths: [
      "/",
      "/healthz",
      "/readyz/ping",
      "/version",
      "/api",
      "/apis",
      "/openapi/v2",
      "/openapi/v3/api/v1",
      "/metrics",
      "/logs",
      "/debug/pprof",
      core,
      `${core}/configmaps`,
      `${core}/configmaps/f`,
      `${core}/secrets/f`,
      `${core}/pods`,
      `${core}/pods/f`,
      `${core}/pods/f/log`,
      `${core}/pods/f/exec`,
      `${core}/pods/f/attach`,
      `${core}/pods/f/portforward`,
      `${core}/pods/f/proxy/x`,
      `${core}/services/echo:80/proxy/`,
      `${core}/services/f`,
      `${core}/events`,
      `${core}/pods/f/eviction`,
      `${core}/pods/f/status`,
      `${core}/serviceaccounts/tenant/token`,
      `${core}/resourcequotas/few`,
      "/apis/apps/v1/namespaces/fuzz/deployments",
      "/apis/apps/v1/namespaces/fuzz/deployments/f/scale",
      "/apis/batch/v1/namespaces/fuzz/jobs",
      "/apis/batch/v1/namespaces/fuzz/cronjobs/f",
      "/apis/autoscaling/v2/namespaces/fuzz/horizontalpodautoscalers",
      "/apis/serverless.kyma-project.io/v1alpha2/namespaces/fuzz/functions",
      "/apis/serverless.kyma-project.io/v1alpha2/namespaces/fuzz/functions/f",
      "/apis/serverless.kyma-project.io/v1alpha1/namespaces/fuzz/functions/f",
      "/apis/serving.knative.dev/v1/namespaces/fuzz/services",
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      "/apis/rbac.authorization.k8s.io/v1/namespaces/fuzz/roles",
      "/apis/networking.k8s.io/v1/namespaces/fuzz/networkpolicies",
      "/apis/policy/v1/namespaces/fuzz/poddisruptionbudgets",
      "/api/v1/nodes/spry/proxy/",
      "/api/v1/namespaces/fuzz/replicationcontrollers",
    ],
    queries: [
      "watch=true",
      "watch=1&timeoutSeconds=1",
      "resourceVersion=0",
      "resourceVersion=1",
      "resourceVersionMatch=Exact",
      "limit=1",
      "continue=abc",
      "labelSelector=a%20in%20(b)",
      "fieldSelector=metadata.name%3Df",
      "fieldManager=fuzz",
      "force=true",
      "dryRun=All",
      "fieldValidation=Strict",
      "pretty=true",
      "timeout=1s",
      "propagationPolicy=Foreground",
      "gracePeriodSeconds=0",
      "command=sh",
      "container=c",
      "stdin=true&stdout=true&tty=true",
      "ports=80",
      "follow=true",
      "tailLines=1",
      "sinceTime=x",
      "sendInitialEvents=true",
      "allowWatchBookmarks=true",
      "orphanDependents=true",
      "as=Table",
    ],
    headers: [
      "accept: application/json",
      "accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      "sec-websocket-protocol: v5.channel.k8s.io",
      "x-stream-protocol-version: v4.channel.k8s.io",
      "user-agent: kubectl",
    ],
    types: [
      json,
      json,
      "application/yaml",
      "",
      "text/plain",
      "application/vnd.kubernetes.protobuf",
      "application/json; charset=x",
      ...patches,
    ],
    bodies,
  };
}

export function registryWords(auth: string, digest: string, manifest: unknown): Vocabulary {
  const as = `localhost\r\nauthorization: Basic ${auth}`;
  const hex = `sha256:${"ab".repeat(32)}`;
  return {
    hosts: [as, as, as, as, "localhost", ""],
    paths: [
      "/v2/",
      "/v2",
      "/v2/_catalog",
      "/v2/fuzz/echo/tags/list",
      `/v2/fuzz/echo/manifests/${digest}`,
      "/v2/fuzz/echo/manifests/latest",
      `/v2/fuzz/echo/blobs/${hex}`,
      "/v2/fuzz/echo/blobs/uploads/",
      "/v2/fuzz/echo/blobs/uploads/00000000-0000-0000-0000-000000000000",
      `/v2/fuzz/echo/referrers/${digest}`,
      "/v2/default/canary/tags/list",
      "/v2/fuzz/dependencies.cache/nodejs24/manifests/k",
      "/v2/spry/nodejs24/tags/list",
      "/v2/fuzz/new/manifests/t",
      "/v2/a/b/c/d/e/f/manifests/x",
      "/metrics",
      "/healthz",
    ],
    queries: [
      `digest=${hex}`,
      `mount=${digest}&from=default/canary`,
      `mount=${hex}&from=fuzz/echo`,
      "n=1",
      "n=-1",
      "last=x",
      "artifactType=a/b",
      "digest=md5:x",
    ],
    headers: [
      "content-range: 0-10",
      "range: bytes=0-1",
      "accept: application/vnd.oci.image.manifest.v1+json",
      "oci-subject: x",
      "content-length: 0",
    ],
    types: [
      "application/vnd.oci.image.manifest.v1+json",
      "application/vnd.oci.image.index.v1+json",
      "application/vnd.docker.distribution.manifest.v2+json",
      "application/octet-stream",
      "",
      json,
    ],
    fitting: [
      ["/v2/fuzz/echo/manifests/other", manifest],
      [`/v2/fuzz/echo/manifests/${digest}`, manifest],
      ["/v2/fuzz/elsewhere/manifests/other", manifest],
    ],
    bodies: [
      manifest,
      {
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [{ mediaType: "x", digest, size: 1 }],
        subject: { digest, size: 1, mediaType: "x" },
        annotations: { a: "b" },
      },
    ],
  };
}

export function gatewayWords(): Vocabulary {
  return {
    hosts: [
      "echo.fuzz.localhost",
      "echo.fuzz.localhost",
      "echo.fuzz.svc.cluster.local",
      "echo.fuzz.localhost:8080",
      "ECHO.FUZZ.LOCALHOST.",
      "localhost",
      "missing.fuzz.localhost",
      "",
      "canary.default.localhost\r\nhost: echo.fuzz.localhost",
      "[::1]",
      "a@echo.fuzz.localhost",
    ],
    paths: [
      "/",
      "/a/b?c=d",
      "/fn/fuzz/echo/",
      "/fn/default/canary/x",
      "/fn/../",
      "/fn/fuzz/",
      "/healthz",
      "/metrics",
      "/.well-known/acme-challenge/x",
      "/%2e%2e/%2e%2e/etc/passwd",
    ],
    queries: ["a=b", "name=x", "a"],
    headers: [
      "accept: text/html",
      "ce-specversion: 1.0\r\nce-type: a\r\nce-source: b\r\nce-id: c",
      "te: trailers",
      "trailer: x",
      "connection: x-a\r\nx-a: b",
    ],
    types: [
      json,
      "text/plain",
      "application/cloudevents+json",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "",
    ],
    fitting: [["/", { a: 1 }]],
    bodies: [{ a: 1 }, { specversion: "1.0", type: "a", source: "b", id: "c", data: { x: [1] } }],
  };
}

function apiBodies(): unknown[] {
  const meta = {
    name: "f",
    namespace: "fuzz",
    labels: { a: "b" },
    annotations: { c: "d" },
  };
  const container = {
    name: "c",
    image: "nowhere.invalid/x@sha256:" + "0".repeat(64),
    env: [{ name: "A", value: "b" }],
    resources: { limits: { cpu: "1", memory: "1Gi" } },
  };
  const template = {
    metadata: { labels: { a: "b" } },
    spec: { containers: [container], volumes: [{ name: "v", emptyDir: {} }] },
  };
  return [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: meta,
      data: { a: "b" },
      binaryData: { c: "AA==" },
    },
    { apiVersion: "v1", kind: "Secret", metadata: meta, stringData: { a: "b" }, type: "Opaque" },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: meta,
      spec: { selector: { a: "b" }, ports: [{ port: 80, targetPort: 8080, name: "http" }] },
    },
    { apiVersion: "v1", kind: "Pod", metadata: meta, spec: template.spec },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: meta,
      spec: { replicas: 1, selector: { matchLabels: { a: "b" } }, template },
    },
    {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: meta,
      spec: { template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } } },
    },
    {
      apiVersion: "serverless.kyma-project.io/v1alpha2",
      kind: "Function",
      metadata: { ...meta, finalizers: [] },
      spec: {
        runtime: "nodejs24",
        source: { inline: { source: "module.exports={main:()=>1}", dependencies: "{}" } },
        scaleConfig: { minReplicas: 0, maxReplicas: 1 },
        env: [{ name: "A", value: "b" }],
        resourceConfiguration: { function: { profile: "XS" } },
      },
    },
    {
      apiVersion: "serverless.kyma-project.io/v1alpha2",
      kind: "Function",
      metadata: meta,
      spec: {
        runtime: "python312",
        source: {
          gitRepository: { url: "http://127.0.0.1:1/x.git", reference: "main", baseDir: "/" },
        },
      },
    },
    {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: meta,
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "f" },
        maxReplicas: 2,
        metrics: [
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
          },
        ],
      },
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: meta,
      rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }],
    },
    {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: { verb: "get", resource: "pods" } },
    },
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { audiences: ["x"], expirationSeconds: 600 },
    },
    {
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: "Foreground",
      preconditions: { uid: "x" },
    },
    [
      { op: "replace", path: "/data/a", value: "c" },
      { op: "copy", from: "/metadata", path: "/data/b" },
      { op: "test", path: "/kind", value: "x" },
      { op: "move", from: "/metadata/name", path: "/data" },
    ],
    {
      metadata: { labels: { a: null }, managedFields: [{}] },
      data: { $patch: "replace", $retainKeys: ["a"], "$setElementOrder/x": [1] },
    },
  ];
}
