/** Events in a cluster: what accepts and delivers them. What keeps them until then: nats-objects.ts. */
import { functions } from "@spry/function";
import { controllerAccount } from "./access.ts";
import {
  administrationObjects,
  administrationPort,
  administrationRules,
  administrationSecretRules,
} from "./administration.ts";
import { eventingRules, subscriptionRules } from "./eventing.ts";
import { natsObjects, natsVariables } from "./nats-objects.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { field, spread } from "./pod-parts.ts";
import { gatewayName } from "./names.ts";
import { rule, type Rule } from "./rule.ts";
import { type InstallValues } from "./values.ts";

export const eventingName = "serverless-eventing";
export const eventingLabels = { "app.kubernetes.io/name": eventingName };
const group = "rbac.authorization.k8s.io";
const rbac = `${group}/v1`;

/** In the whole cluster: sinks may be in any namespace, and so may Functions with schedules. */
export const eventingClusterRules: Rule[] = [
  // Who sends a request of administration, the API server says.
  ...eventingRules.filter(({ apiGroups }) => !apiGroups.includes("authentication.k8s.io")),
  rule(functions.group, ["functions"], "list", "watch"),
];
/** In Spry's own namespace: who delivers. */
export const eventingNamespaceRules: Rule[] = [
  rule("coordination.k8s.io", ["leases"], "get", "create", "update"),
  ...administrationSecretRules,
];

/** The gateway's, which accepts asynchronous calls. */
const gatewayCallRules: Rule[] = [rule("", ["namespaces"], "get")];

export function eventingObjects(values: InstallValues): InstalledObject[] {
  const { namespace, eventing } = values;
  if (!eventing.enabled) return [];
  const account = { name: eventingName, namespace };
  const bind = (name: string, subject: string) =>
    object(
      rbac,
      "ClusterRoleBinding",
      { name },
      {
        roleRef: { apiGroup: group, kind: "ClusterRole", name },
        subjects: [{ kind: "ServiceAccount", name: subject, namespace }],
      },
    );
  const ofGateway = `${gatewayName}-eventing`;
  const ofController = `${controllerAccount}-eventing`;
  return [
    object("v1", "ServiceAccount", account, { automountServiceAccountToken: false }),
    object(rbac, "ClusterRole", { name: eventingName }, { rules: eventingClusterRules }),
    bind(eventingName, eventingName),
    object(rbac, "Role", account, { rules: eventingNamespaceRules }),
    object(rbac, "RoleBinding", account, {
      roleRef: { apiGroup: group, kind: "Role", name: eventingName },
      subjects: [{ kind: "ServiceAccount", ...account }],
    }),
    object(
      rbac,
      "ClusterRole",
      { name: ofController },
      {
        rules: [...subscriptionRules, ...administrationRules],
      },
    ),
    bind(ofController, controllerAccount),
    object(
      "apps/v1",
      "Deployment",
      { ...account, labels: eventingLabels },
      {
        spec: deployment(values),
      },
    ),
    ...administrationObjects(namespace, { account: eventingName, selector: eventingLabels }),
    object(rbac, "ClusterRole", { name: ofGateway }, { rules: gatewayCallRules }),
    bind(ofGateway, gatewayName),
    ...(eventing.nats.servers.length === 0 ? natsObjects(values) : []),
  ];
}

function deployment(values: InstallValues) {
  const { eventing, images, imagePullSecrets } = values;
  const probe = (path: string) => ({ httpGet: { path, port: "status" } });
  return {
    replicas: eventing.replicas,
    selector: { matchLabels: eventingLabels },
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    template: {
      metadata: {
        labels: eventingLabels,
        annotations: {
          "sidecar.istio.io/inject": "false",
          "prometheus.io/scrape": "true",
          "prometheus.io/port": "8090",
        },
      },
      spec: {
        serviceAccountName: eventingName,
        automountServiceAccountToken: true,
        enableServiceLinks: false,
        topologySpreadConstraints: spread(eventingLabels),
        terminationGracePeriodSeconds: 45,
        securityContext: podSecurityContext,
        imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
        containers: [
          {
            name: "eventing",
            image: images["eventing"],
            imagePullPolicy: "IfNotPresent",
            ports: [
              { name: "http-publish", containerPort: 8080 },
              { name: "status", containerPort: 8090 },
              { name: "https", containerPort: administrationPort },
            ],
            env: [
              field("POD_NAME", "metadata.name"),
              field("POD_NAMESPACE", "metadata.namespace"),
              ...natsVariables(values),
            ],
            startupProbe: { ...probe("/healthz"), periodSeconds: 1, failureThreshold: 60 },
            readinessProbe: { ...probe("/readyz"), periodSeconds: 2 },
            livenessProbe: { ...probe("/healthz"), periodSeconds: 20, timeoutSeconds: 10 },
            resources: {
              requests: { cpu: "20m", memory: "96Mi" },
              limits: { cpu: "2", memory: "512Mi" },
            },
            securityContext: containerSecurityContext,
          },
        ],
      },
    },
  };
}
