import { type Case, post } from "../step.ts";
import { sampleOf, samples } from "./objects.ts";
import { at } from "../step.ts";

/** Kind → changes at paths, each of which a server has something to say about. `undefined` removes. */
const mistakes: Record<string, [path: string, value: unknown][]> = {
  ConfigMap: [["metadata.name", "Bad_Name"], ["metadata.name", "x".repeat(254)], ["metadata.labels", { "a b": "c" }],
    ["metadata.labels", { a: "b c" }], ["metadata.annotations", { "a b": "c" }], ["data", { "a/b": "c" }], ["data", { "": "c" }],
    ["binaryData", { key: "YQ==" }], ["metadata.ownerReferences", [{ apiVersion: "v1", kind: "Pod", name: "x" }]],
    ["metadata.ownerReferences", [{ apiVersion: "", kind: "", name: "", uid: "" }]], ["metadata.finalizers", ["Bad Name"]],
    ["data", { key: "x".repeat(1_100_000) }], ["metadata.generateName", "a-"], ["metadata.creationTimestamp", "2020-01-01T00:00:00Z"],
    ["metadata.generation", 5], ["metadata.deletionTimestamp", "2020-01-01T00:00:00Z"], ["metadata.selfLink", "x"]],
  Secret: [["type", "kubernetes.io/tls"], ["type", "kubernetes.io/basic-auth"], ["type", "kubernetes.io/ssh-auth"],
    ["type", "kubernetes.io/dockerconfigjson"], ["type", "kubernetes.io/service-account-token"], ["data", { a: "!" }], ["type", "my/own"],
    ["stringData", { "a/b": "x" }]],
  Service: [["spec.ports.0.port", 0], ["spec.ports.0.port", 70000], ["spec.ports.0.targetPort", "Bad_Name"], ["spec.ports", []],
    ["spec.type", "Nonsense"], ["spec.clusterIP", "None"], ["spec.clusterIP", "1.2.3"], ["spec.ports.0.protocol", "XXX"],
    ["spec.type", "NodePort"], ["spec.type", "LoadBalancer"], ["spec.type", "ExternalName"], ["spec.sessionAffinity", "ClientIP"],
    ["spec.sessionAffinity", "X"], ["metadata.name", "1st"], ["spec.ports.1", { port: 81 }], ["spec.selector", { "a b": "c" }],
    ["spec.externalName", "x.y"], ["spec.internalTrafficPolicy", "X"], ["spec.ipFamilyPolicy", "X"], ["spec.externalIPs", ["x"]]],
  Pod: [["spec.containers", []], ["spec.containers", undefined], ["spec.containers.0.name", "Bad_Name"], ["spec.containers.0.image", ""],
    ["spec.containers.0.image", undefined], ["spec.containers.0.name", undefined], ["spec.restartPolicy", "X"],
    ["spec.containers.0.imagePullPolicy", "X"], ["spec.dnsPolicy", "X"], ["spec.containers.0.env", [{ name: "" }]],
    ["spec.containers.0.env", [{ name: "a=b" }]], ["spec.containers.0.env", [{ name: "A", value: "1", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }]],
    ["spec.containers.0.env", [{ name: "A", valueFrom: {} }]], ["spec.containers.0.env", [{ name: "A", valueFrom: { fieldRef: { fieldPath: "x" } } }]],
    ["spec.containers.0.ports", [{ containerPort: 0 }]], ["spec.containers.0.ports", [{ containerPort: 80, name: "Bad_Name" }]],
    ["spec.containers.0.ports", [{ containerPort: 80, name: "a" }, { containerPort: 81, name: "a" }]],
    ["spec.containers.0.resources", { limits: { cpu: "x" } }], ["spec.containers.0.resources", { limits: { cpu: "-1" } }],
    ["spec.containers.0.resources", { limits: { cpu: "1" }, requests: { cpu: "2" } }], ["spec.containers.0.resources", { limits: { nonsense: "1" } }],
    ["spec.containers.0.resources", { limits: { memory: "1Gi", cpu: "500m" } }],
    ["spec.volumes", [{ name: "v" }]], ["spec.volumes", [{ name: "v", emptyDir: {}, configMap: { name: "x" } }]], ["spec.volumes", [{ name: "v", configMap: {} }]],
    ["spec.volumes", [{ name: "v", secret: { secretName: "x" } }, { name: "v", emptyDir: {} }]],
    ["spec.volumes", [{ name: "v", emptyDir: { medium: "X" } }]], ["spec.volumes", [{ name: "v", hostPath: { path: "/x", type: "X" } }]],
    ["spec.volumes", [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }]],
    ["spec.containers.0.volumeMounts", [{ name: "absent", mountPath: "/x" }]], ["spec.containers.0.volumeMounts", [{ name: "", mountPath: "" }]],
    ["spec.containers.0.livenessProbe", {}], ["spec.containers.0.livenessProbe", { httpGet: { path: "/", port: 0 } }],
    ["spec.containers.0.livenessProbe", { httpGet: { path: "/", port: 80 }, exec: { command: ["x"] } }],
    ["spec.containers.0.readinessProbe", { httpGet: { path: "/", port: "http" }, periodSeconds: -1 }], ["spec.containers.0.readinessProbe", { tcpSocket: { port: 80 } }],
    ["spec.containers.0.livenessProbe", { exec: { command: ["x"] }, successThreshold: 2 }], ["spec.containers.0.livenessProbe", { grpc: { port: 80 } }],
    ["spec.containers.0.lifecycle", { preStop: {} }], ["spec.containers.0.lifecycle", { preStop: { exec: { command: ["x"] } } }],
    ["spec.containers.0.terminationMessagePolicy", "X"], ["spec.containers.0.securityContext", { privileged: true, allowPrivilegeEscalation: false }],
    ["spec.containers.0.securityContext", { runAsUser: -1 }], ["spec.securityContext", { runAsUser: -5 }], ["spec.securityContext", { fsGroup: 1, runAsNonRoot: true, seccompProfile: { type: "X" } }],
    ["spec.initContainers", [{ name: "main", image: "x" }]], ["spec.initContainers", [{ name: "init", image: "x", restartPolicy: "Always" }]], ["spec.initContainers", [{ name: "init", image: "x", livenessProbe: { exec: { command: ["x"] } } }]],
    ["spec.nodeName", "Bad_Name"], ["spec.serviceAccountName", "Bad_Name"], ["spec.terminationGracePeriodSeconds", -1], ["spec.activeDeadlineSeconds", 0],
    ["spec.tolerations", [{ operator: "X" }]], ["spec.tolerations", [{ key: "a", effect: "X" }]], ["spec.nodeSelector", { "a b": "c" }], ["spec.hostNetwork", true], ["spec.hostname", "Bad_Name"],
    ["spec.imagePullSecrets", [{ name: "x" }]], ["spec.affinity", { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } }],
    ["spec.topologySpreadConstraints", [{ maxSkew: 0 }]], ["spec.priorityClassName", "absent"], ["spec.hostAliases", [{ ip: "x" }]], ["spec.containers.1", { name: "main", image: "x" }],
    ["spec.containers.0.envFrom", [{}]], ["spec.containers.0.command", "x"], ["spec.containers.0.image", " x"], ["spec.schedulerName", "mine"], ["spec.ephemeralContainers", [{ name: "e", image: "x" }]]],
  Deployment: [["spec.selector", undefined], ["spec.selector", {}], ["spec.selector.matchLabels.app", "other"], ["spec.replicas", -1], ["spec.replicas", "1"], ["spec.replicas", 1.5],
    ["spec.template", undefined], ["spec.template.spec.containers", []], ["spec.template.spec.restartPolicy", "Never"], ["spec.strategy", { type: "X" }], ["spec.strategy", { type: "Recreate", rollingUpdate: {} }],
    ["spec.strategy", { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } }], ["spec.strategy", { rollingUpdate: { maxSurge: "x%" } }], ["spec.strategy", { rollingUpdate: { maxUnavailable: "150%" } }], ["spec.minReadySeconds", -1],
    ["spec.revisionHistoryLimit", -1], ["spec.progressDeadlineSeconds", 0], ["spec.minReadySeconds", 700], ["spec.selector.matchExpressions", [{ key: "a", operator: "X" }]], ["spec.selector.matchExpressions", [{ key: "a", operator: "In" }]],
    ["spec", undefined], ["spec", null], ["spec.template.metadata.labels", { app: "b c" }], ["spec.template.spec.activeDeadlineSeconds", 5], ["spec.template.spec.containers.0.name", undefined]],
  ReplicaSet: [["spec.selector", undefined], ["spec.selector.matchLabels.app", "other"], ["spec.replicas", -1], ["spec.template", undefined], ["spec.template.spec.restartPolicy", "Never"], ["spec.minReadySeconds", -1]],
  Job: [["spec.template.spec.restartPolicy", undefined], ["spec.template.spec.restartPolicy", "Always"], ["spec.parallelism", -1], ["spec.completions", -1], ["spec.backoffLimit", -1], ["spec.activeDeadlineSeconds", -1],
    ["spec.ttlSecondsAfterFinished", -1], ["spec.completionMode", "X"], ["spec.completionMode", "Indexed"], ["spec.suspend", true], ["spec.manualSelector", true], ["spec.selector", { matchLabels: { a: "b" } }], ["spec.template", undefined],
    ["spec.podFailurePolicy", { rules: [] }], ["spec.podFailurePolicy", { rules: [{ action: "X" }] }], ["spec.podReplacementPolicy", "X"], ["spec.backoffLimitPerIndex", 1], ["spec.template.metadata", { labels: { "job-name": "x" } }], ["metadata.name", "x".repeat(64)], ["spec.parallelism", 2], ["spec.completions", 3]],
  CronJob: [["spec.schedule", ""], ["spec.schedule", "nonsense"], ["spec.schedule", "@daily"], ["spec.schedule", "TZ=UTC * * * * *"], ["spec.timeZone", "Mars/Base"], ["spec.timeZone", "Europe/Berlin"], ["spec.concurrencyPolicy", "X"],
    ["spec.startingDeadlineSeconds", -1], ["spec.successfulJobsHistoryLimit", -1], ["spec.failedJobsHistoryLimit", -1], ["spec.jobTemplate.spec.template.spec.restartPolicy", "Always"], ["metadata.name", "x".repeat(53)], ["spec.jobTemplate", undefined], ["spec.suspend", true], ["spec.timeZone", ""]],
  HorizontalPodAutoscaler: [["spec.maxReplicas", 0], ["spec.maxReplicas", undefined], ["spec.minReplicas", 0], ["spec.minReplicas", 9], ["spec.scaleTargetRef", {}], ["spec.scaleTargetRef", undefined], ["spec.metrics", []], ["spec.metrics", undefined],
    ["spec.metrics.0.resource.target.averageUtilization", 0], ["spec.metrics.0.type", "X"], ["spec.metrics.0.resource.target.type", "X"], ["spec.metrics.0.resource.name", ""], ["spec.metrics.0.resource", undefined],
    ["spec.behavior", {}], ["spec.behavior", { scaleDown: { stabilizationWindowSeconds: -1 } }], ["spec.behavior", { scaleUp: { policies: [] } }], ["spec.behavior", { scaleUp: { policies: [{ type: "X", value: 0, periodSeconds: 0 }] } }], ["spec.behavior", { scaleDown: { selectPolicy: "X" } }],
    ["spec.metrics", [{ type: "Pods", pods: { metric: { name: "x" }, target: { type: "AverageValue", averageValue: "1" } } }]], ["spec.behavior", { scaleUp: { stabilizationWindowSeconds: 10 } }]],
  PodDisruptionBudget: [["spec.maxUnavailable", 1], ["spec.minAvailable", -1], ["spec.minAvailable", "x"], ["spec.selector.matchLabels", { "a b": "c" }], ["spec.minAvailable", "120%"], ["spec.unhealthyPodEvictionPolicy", "X"]],
  Ingress: [["spec", {}], ["spec.rules", [{ host: "Bad_Host" }]], ["spec.rules", [{ http: { paths: [] } }]], ["spec.rules", [{ http: { paths: [{ path: "x", pathType: "Prefix", backend: {} }] } }]], ["spec.rules", [{ http: { paths: [{ path: "/", backend: { service: { name: "a", port: {} } } }] } }]], ["spec.tls", [{ hosts: ["x y"] }]], ["spec.defaultBackend", {}]],
  NetworkPolicy: [["spec.policyTypes", ["X"]], ["spec.ingress", [{ from: [{}] }]], ["spec.ingress", [{ from: [{ ipBlock: { cidr: "x" } }] }]], ["spec.ingress", [{ ports: [{ port: 0, protocol: "X" }] }]], ["spec.egress", [{}]], ["spec.podSelector", { matchLabels: { "a b": "" } }], ["spec.ingress", [{ ports: [{ port: 5, endPort: 2 }] }]]],
  Lease: [["spec.leaseDurationSeconds", 0], ["spec.leaseTransitions", -1], ["spec.renewTime", "2020-01-01T00:00:00.000000Z"], ["spec.renewTime", "x"], ["spec.holderIdentity", ""]],
  Role: [["rules", [{}]], ["rules", [{ verbs: [] }]], ["rules", [{ verbs: ["get"], resources: [], apiGroups: [] }]], ["rules", [{ verbs: ["get"], nonResourceURLs: ["/x"] }]], ["rules", []]],
  RoleBinding: [["roleRef", {}], ["roleRef", { apiGroup: "x", kind: "Role", name: "one" }], ["roleRef", { apiGroup: "rbac.authorization.k8s.io", kind: "X", name: "one" }], ["subjects", [{}]], ["subjects", [{ kind: "User", name: "" }]], ["subjects", [{ kind: "User", name: "x" }]], ["roleRef.apiGroup", undefined], ["subjects", [{ kind: "ServiceAccount", name: "x", apiGroup: "y" }]]],
  EndpointSlice: [["addressType", "X"], ["addressType", undefined], ["endpoints.0.addresses", []], ["endpoints.0.addresses", ["x"]], ["ports.0.port", 0], ["ports.0.protocol", "X"], ["ports.0.name", "Bad_Name"], ["endpoints", undefined], ["endpoints.0.addresses", ["127.0.0.1"]], ["ports", undefined], ["endpoints.0.conditions", {}]],
  PersistentVolumeClaim: [["spec.accessModes", []], ["spec.accessModes", ["X"]], ["spec.resources", {}], ["spec.resources", { requests: { storage: "0" } }], ["spec.storageClassName", "Bad_Name"], ["spec.volumeMode", "X"]],
  ServiceAccount: [["secrets", [{ name: "x" }]], ["imagePullSecrets", [{ name: "x" }]], ["automountServiceAccountToken", false], ["metadata.name", "Bad_Name"]],
  ResourceQuota: [["spec.hard", { "a b": "1" }], ["spec.hard", { pods: "-1" }], ["spec.hard", { pods: "x" }], ["spec.hard", { "requests.cpu": "500m", "count/pods": "1" }], ["spec.scopes", ["X"]]],
  LimitRange: [["spec.limits", [{ type: "X" }]], ["spec.limits", [{ type: "Container", max: { cpu: "1" }, min: { cpu: "2" } }]], ["spec.limits", [{ type: "Container", max: { cpu: "1" } }]], ["spec.limits", [{ type: "Container", default: { cpu: "1" }, defaultRequest: { cpu: "2" } }]]],
  Event: [["involvedObject.namespace", "elsewhere"], ["type", "X"], ["involvedObject", {}], ["reason", ""], ["eventTime", "2020-01-01T00:00:00.000000Z"]],
};

export const validations: Case[] = Object.entries(mistakes).map(([kind, changes]) => {
  const { groupVersion, plural } = samples[kind] ?? sampleOf(kind);
  return {
    name: `validation of a ${kind}`,
    steps: changes.map(([path, value]) =>
      post(`${at(groupVersion, plural)}?dryRun=All`, changed(sampleOf(kind).object, path, value)),
    ),
  };
});

/** The object with a value at a dotted path; objects on the way are made. */
export function changed(object: Record<string, unknown>, path: string, value: unknown): Record<string, unknown> {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  let parent: Record<string, unknown> = object;
  for (const key of keys) {
    parent[key] ??= {};
    parent = parent[key] as Record<string, unknown>;
  }
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return object;
}
