/** Group-version → the resources of it that the embedded API server serves. */
export const served: Record<string, string[]> = {
  v1: [
    "namespaces",
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "pods",
    "events",
    "nodes",
    "endpoints",
    "persistentvolumeclaims",
    "persistentvolumes",
    "resourcequotas",
    "limitranges",
  ],
  "apps/v1": ["deployments", "replicasets", "controllerrevisions"],
  "batch/v1": ["jobs", "cronjobs"],
  "autoscaling/v2": ["horizontalpodautoscalers"],
  "autoscaling/v1": ["horizontalpodautoscalers"],
  "discovery.k8s.io/v1": ["endpointslices"],
  "coordination.k8s.io/v1": ["leases"],
  "events.k8s.io/v1": ["events"],
  "networking.k8s.io/v1": ["ingresses", "ingressclasses", "networkpolicies"],
  "policy/v1": ["poddisruptionbudgets"],
  "rbac.authorization.k8s.io/v1": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
  "scheduling.k8s.io/v1": ["priorityclasses"],
  "apiextensions.k8s.io/v1": ["customresourcedefinitions"],
  "apiregistration.k8s.io/v1": ["apiservices"],
  "admissionregistration.k8s.io/v1": [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
  ],
};

/** The same for kinds that are answered when they are created, and never stored. */
export const reviews: Record<string, string[]> = {
  "authentication.k8s.io/v1": ["selfsubjectreviews", "tokenreviews"],
  "authorization.k8s.io/v1": [
    "localsubjectaccessreviews",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "subjectaccessreviews",
  ],
};

/** Definitions of what only travels in bodies: arguments of subresources and verbs. */
export const bodyDefinitions = [
  "io.k8s.api.core.v1.Binding",
  "io.k8s.api.policy.v1.Eviction",
  "io.k8s.api.autoscaling.v1.Scale",
  "io.k8s.api.authentication.v1.TokenRequest",
  "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];
