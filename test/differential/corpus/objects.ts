/** One good object of each kind that Functions, what is around them and people's tools use. */
export interface Sample {
  groupVersion: string;
  plural: string;
  object: Record<string, unknown>;
}

const container = { name: "main", image: "example.invalid/image:1" };
export const podSpec = { automountServiceAccountToken: false, containers: [container] };
const template = { metadata: { labels: { app: "one" } }, spec: podSpec };
const jobSpec = { template: { spec: { ...podSpec, restartPolicy: "Never" } } };
const metadata = { name: "one" };

function sample(groupVersion: string, plural: string, kind: string, rest: object): Sample {
  return { groupVersion, plural, object: { apiVersion: groupVersion, kind, metadata, ...rest } };
}

export const samples: Record<string, Sample> = {
  ConfigMap: sample("v1", "configmaps", "ConfigMap", { data: { key: "value" } }),
  Secret: sample("v1", "secrets", "Secret", { stringData: { key: "value" } }),
  Service: sample("v1", "services", "Service", {
    spec: { selector: { app: "one" }, ports: [{ port: 80, targetPort: 8080 }] },
  }),
  ServiceAccount: sample("v1", "serviceaccounts", "ServiceAccount", {}),
  Pod: sample("v1", "pods", "Pod", { spec: podSpec }),
  Event: sample("v1", "events", "Event", {
    involvedObject: { kind: "Pod", name: "one", namespace: "$ns" },
    reason: "Started",
    message: "it began",
    type: "Normal",
    count: 1,
  }),
  PersistentVolumeClaim: sample("v1", "persistentvolumeclaims", "PersistentVolumeClaim", {
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  }),
  ResourceQuota: sample("v1", "resourcequotas", "ResourceQuota", {
    spec: { hard: { pods: "10" } },
  }),
  LimitRange: sample("v1", "limitranges", "LimitRange", {
    spec: { limits: [{ type: "Container", default: { cpu: "1" } }] },
  }),
  Deployment: sample("apps/v1", "deployments", "Deployment", {
    spec: { selector: { matchLabels: { app: "one" } }, template },
  }),
  ReplicaSet: sample("apps/v1", "replicasets", "ReplicaSet", {
    spec: { selector: { matchLabels: { app: "one" } }, template },
  }),
  Job: sample("batch/v1", "jobs", "Job", { spec: jobSpec }),
  CronJob: sample("batch/v1", "cronjobs", "CronJob", {
    spec: { schedule: "*/5 * * * *", jobTemplate: { spec: jobSpec } },
  }),
  HorizontalPodAutoscaler: sample(
    "autoscaling/v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    {
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "one" },
        maxReplicas: 5,
        metrics: [
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
          },
        ],
      },
    },
  ),
  EndpointSlice: sample("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", {
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "http", port: 8080 }],
  }),
  PodDisruptionBudget: sample("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", {
    spec: { minAvailable: 1, selector: { matchLabels: { app: "one" } } },
  }),
  Ingress: sample("networking.k8s.io/v1", "ingresses", "Ingress", {
    spec: { defaultBackend: { service: { name: "one", port: { number: 80 } } } },
  }),
  NetworkPolicy: sample("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", {
    spec: { podSelector: {}, ingress: [{ ports: [{ port: 8080 }] }] },
  }),
  Lease: sample("coordination.k8s.io/v1", "leases", "Lease", {
    spec: { holderIdentity: "me", leaseDurationSeconds: 15 },
  }),
  Role: sample("rbac.authorization.k8s.io/v1", "roles", "Role", {
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
  }),
  RoleBinding: sample("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "one" },
    subjects: [{ kind: "ServiceAccount", name: "default" }],
  }),
  ControllerRevision: sample("apps/v1", "controllerrevisions", "ControllerRevision", {
    revision: 3,
    // With the keys in order: kube-apiserver compares the text, which some requests put in order.
    data: {
      image: "example.invalid/one@sha256:1",
      spec: { source: { inline: { source: "code" } } },
    },
  }),
};

export function sampleOf(kind: string): Sample {
  const found = samples[kind];
  if (!found) throw new Error(`there is no sample of ${kind}`);
  return structuredClone(found);
}
