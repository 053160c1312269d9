/** The registry in the cluster: pushed to by its Service, pulled from by a port of every node (contract, section 6.1). */
import { registryCredentialsName } from "../in-cluster/registry-credentials.ts";
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
  return [
    object(
      "v1",
      "ServiceAccount",
      { name: registryName, namespace },
      {
        automountServiceAccountToken: false,
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
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

function deployment(values: InstallValues) {
  const credential = (name: string, key: string) => ({
    name,
    valueFrom: { secretKeyRef: { name: registryCredentialsName, key } },
  });
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
        automountServiceAccountToken: false,
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
              // The controller makes the Secret; until then the Pod waits.
              credential("REGISTRY_USERNAME", "username"),
              credential("REGISTRY_PASSWORD", "password"),
            ],
            ports: [{ name: "http", containerPort: port }],
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
            ],
          },
        ],
        volumes: [
          { name: "images", ...storageOf(values) },
          { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
        ],
      },
    },
  };
}

function storageOf({ registry: { storage } }: InstallValues) {
  if (storage.kind === "emptyDir") return { emptyDir: { sizeLimit: storage.size } };
  return { persistentVolumeClaim: { claimName: registryName } };
}
