/** The registry in the cluster: pushed to by its Service, pulled from by a port of every node (docs/compatibility.md#internal-registry). */
import { kindsWithImages } from "@spry/controller";
import { registryKeyName } from "../in-cluster/registry-key.ts";
import { usageTokenMount, usageTokenVolume } from "../in-cluster/usage-token.ts";
import { type Rule, rule } from "./access.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { type InstallValues } from "./values.ts";

export const registryName = "serverless-docker-registry";
export const registryLabels = { "app.kubernetes.io/name": registryName };
const port = 5000;
const metricsPort = 5001;
/** What is stored, and why: for the dashboard alone, which has a token (network.ts, in-cluster/usage-token.ts). */
const usagePort = 5002;
const rbac = "rbac.authorization.k8s.io/v1";

/** In the whole cluster: what anything there refers to stays in the registry, and whose time is over is not let in. */
export const registryRules: Rule[] = [
  ...kindsWithImages.map(({ group, plural }) => rule(group, [plural], "list")),
  rule("", ["namespaces"], "get"),
  rule("batch", ["jobs"], "get"),
];

/** Where the dashboard asks what is stored. */
export const registryUsageUrl = (namespace: string): string =>
  `http://${registryName}-metrics.${namespace}.svc:${usagePort}/usage`;

export function registryAddresses({ namespace, registry }: InstallValues): {
  pushAddress: string;
  pullAddress: string;
} {
  return {
    pushAddress: `${registryName}.${namespace}.svc.cluster.local:${port}`,
    // A runtime speaks HTTP without TLS to this name alone.
    pullAddress: `localhost:${registry.nodePort}`,
  };
}

export function registryObjects(values: InstallValues): InstalledObject[] {
  const { namespace, registry } = values;
  if (!registry.enabled) return [];
  const { storage } = registry;
  const metadata = { name: registryName, namespace, labels: registryLabels };
  const claim = object("v1", "PersistentVolumeClaim", metadata, {
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: storage.size } },
      ...(storage.storageClassName ? { storageClassName: storage.storageClassName } : {}),
    },
  });
  const account = { name: registryName, namespace };
  return [
    object("v1", "ServiceAccount", account, { automountServiceAccountToken: false }),
    object(rbac, "ClusterRole", { name: registryName }, { rules: registryRules }),
    object(
      rbac,
      "ClusterRoleBinding",
      { name: registryName },
      {
        roleRef: {
          apiGroup: "rbac.authorization.k8s.io",
          kind: "ClusterRole",
          name: registryName,
        },
        subjects: [{ kind: "ServiceAccount", ...account }],
      },
    ),
    ...(storage.kind === "persistentVolumeClaim" ? [claim] : []),
    object("v1", "Service", metadata, {
      spec: {
        type: "NodePort",
        selector: registryLabels,
        ports: [{ name: "http-registry", port, targetPort: port, nodePort: registry.nodePort }],
      },
    }),
    // A Service of its own, so that it does not get a port of the nodes.
    object(
      "v1",
      "Service",
      {
        ...metadata,
        name: `${registryName}-metrics`,
        annotations: { "prometheus.io/scrape": "true", "prometheus.io/port": String(metricsPort) },
      },
      {
        spec: {
          selector: registryLabels,
          ports: [
            { name: "http-metrics", port: metricsPort, targetPort: metricsPort },
            { name: "http-usage", port: usagePort, targetPort: usagePort },
          ],
        },
      },
    ),
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

function deployment(values: InstallValues) {
  const key = { name: registryKeyName, key: "key" };
  return {
    replicas: 1,
    selector: { matchLabels: registryLabels },
    // Two must never write to one volume.
    strategy: { type: "Recreate" },
    template: {
      metadata: {
        labels: registryLabels,
        annotations: { "sidecar.istio.io/inject": "false" },
      },
      spec: {
        serviceAccountName: registryName,
        automountServiceAccountToken: true,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 10,
        securityContext: podSecurityContext,
        imagePullSecrets: values.imagePullSecrets.map((name) => ({ name })),
        containers: [
          {
            name: "registry",
            image: values.images["registry"],
            imagePullPolicy: "IfNotPresent",
            env: [
              { name: "REGISTRY_DIR", value: "/var/lib/registry" },
              { name: "REGISTRY_VOLUME_SIZE", value: values.registry.storage.size },
              { name: "REGISTRY_CLEANING", value: JSON.stringify(values.registry.cleaning) },
              { name: "SPRY_IMAGES", value: JSON.stringify(values.images) },
              // The controller makes the Secret; until then the Pod waits.
              { name: "REGISTRY_KEY", valueFrom: { secretKeyRef: key } },
            ],
            ports: [
              { name: "http", containerPort: port },
              { name: "metrics", containerPort: metricsPort },
              { name: "usage", containerPort: usagePort },
            ],
            startupProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 60 },
            readinessProbe: { tcpSocket: { port }, periodSeconds: 5 },
            livenessProbe: { tcpSocket: { port }, periodSeconds: 20 },
            resources: {
              requests: { cpu: "10m", memory: "64Mi" },
              limits: { cpu: "1", memory: "300Mi" },
            },
            securityContext: containerSecurityContext,
            volumeMounts: [
              { name: "images", mountPath: "/var/lib/registry" },
              { name: "tmp", mountPath: "/tmp" },
              usageTokenMount,
            ],
          },
        ],
        volumes: [
          { name: "images", ...storageOf(values) },
          { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
          usageTokenVolume,
        ],
      },
    },
  };
}

function storageOf({ registry: { storage } }: InstallValues) {
  if (storage.kind === "emptyDir") return { emptyDir: { sizeLimit: storage.size } };
  return { persistentVolumeClaim: { claimName: registryName } };
}
