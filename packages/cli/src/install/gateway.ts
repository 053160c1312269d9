/** The gateway in a cluster: one address for all Functions, and what Functions that may go to zero or split their traffic are called by. */
import {
  apiRules,
  certificatesSecretName,
  functions,
  istioGateways,
  knative,
} from "@spry/function";
import { admissionLeaseName } from "@spry/gateway";
import { gatewayPorts } from "@spry/serving";
import { countsTokenName } from "../in-cluster/counts-token.ts";
import { rule, type Rule } from "./access.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { natsVariables } from "./nats-objects.ts";
import { gatewayLabels, gatewayName } from "./names.ts";
import { type InstallValues } from "./values.ts";

export { gatewayLabels, gatewayName };
const group = "rbac.authorization.k8s.io";

export const gatewayRules = [
  rule("", ["services"], "list", "watch"),
  rule("discovery.k8s.io", ["endpointslices"], "list", "watch"),
  rule(functions.group, ["functions"], "list", "watch"),
  rule(knative.routes.group, ["routes", "revisions", "domainmappings"], "list", "watch"),
  // Who may call what is served on demand: NetworkPolicies, and whom they name.
  rule("networking.k8s.io", ["networkpolicies"], "list", "watch"),
  rule("", ["pods", "namespaces"], "list", "watch"),
];

/** What the hosts of APIRules take. Whose their definition is decides whether they are served. */
export const gatewayExposureRules = [
  rule(apiRules.group, ["apirules"], "list", "watch"),
  rule(istioGateways.group, ["gateways"], "list", "watch"),
  {
    ...rule("apiextensions.k8s.io", ["customresourcedefinitions"], "get"),
    resourceNames: [`${apiRules.plural}.${apiRules.group}`],
  },
];

/** In Spry's own namespace: the certificates that Gateways name, the scaler's token, and no other Secret; a Lease. */
export const gatewayNamespaceRules: Rule[] = [
  { ...rule("", ["secrets"], "get"), resourceNames: [countsTokenName] },
  { ...rule("", ["secrets"], "get", "list", "watch"), resourceNames: [certificatesSecretName] },
  // By which one of several gateways keeps hard limits. What creates has no name yet.
  rule("coordination.k8s.io", ["leases"], "create"),
  {
    ...rule("coordination.k8s.io", ["leases"], "get", "list", "watch", "update"),
    resourceNames: [admissionLeaseName],
  },
];

/** Where callers in the cluster reach Services that are served on demand: a port for each (ADR 0018). */
export const callerPorts = {
  port: gatewayPorts.first,
  endPort: gatewayPorts.last,
  protocol: "TCP",
};

export function gatewayObjects(values: InstallValues): InstalledObject[] {
  const { namespace, gateway } = values;
  if (!gateway.enabled) return [];
  const account = { name: gatewayName, namespace };
  const metadata = { ...account, labels: gatewayLabels };
  const roleRef = (kind: string) => ({ apiGroup: group, kind, name: gatewayName });
  const subjects = [{ kind: "ServiceAccount", ...account }];
  const scraped = { "prometheus.io/scrape": "true", "prometheus.io/port": "8090" };
  return [
    object("v1", "ServiceAccount", account, { automountServiceAccountToken: false }),
    object(
      `${group}/v1`,
      "ClusterRole",
      { name: gatewayName },
      { rules: [...gatewayRules, ...gatewayExposureRules] },
    ),
    object(
      `${group}/v1`,
      "ClusterRoleBinding",
      { name: gatewayName },
      { roleRef: roleRef("ClusterRole"), subjects },
    ),
    object(`${group}/v1`, "Role", account, { rules: gatewayNamespaceRules }),
    object(`${group}/v1`, "RoleBinding", account, { roleRef: roleRef("Role"), subjects }),
    object(
      "v1",
      "Service",
      { ...metadata, annotations: scraped },
      {
        spec: {
          type: gateway.serviceType,
          selector: gatewayLabels,
          ports: [
            { name: "http", port: 80, targetPort: "http" },
            { name: "https", port: 443, targetPort: "https" },
          ],
        },
      },
    ),
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

function deployment(values: InstallValues) {
  const { gateway, images, imagePullSecrets } = values;
  const probe = (path: string) => ({ httpGet: { path, port: "admin" } });
  return {
    replicas: gateway.replicas,
    selector: { matchLabels: gatewayLabels },
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    template: {
      metadata: { labels: gatewayLabels, annotations: { "sidecar.istio.io/inject": "false" } },
      spec: {
        serviceAccountName: gatewayName,
        automountServiceAccountToken: true,
        enableServiceLinks: false,
        // Not both on one node, if there are two.
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: "kubernetes.io/hostname",
            whenUnsatisfiable: "ScheduleAnyway",
            labelSelector: { matchLabels: gatewayLabels },
          },
        ],
        terminationGracePeriodSeconds: 30,
        securityContext: podSecurityContext,
        imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
        containers: [
          {
            name: "gateway",
            image: images["gateway"],
            imagePullPolicy: "IfNotPresent",
            ports: [
              { name: "http", containerPort: 8080 },
              { name: "https", containerPort: 8443 },
              { name: "admin", containerPort: 8090 },
            ],
            // Its own address in the EndpointSlices that lead callers to it.
            env: [
              { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
              {
                name: "POD_NAMESPACE",
                valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } },
              },
              { name: "SPRY_SERVICE_TYPE", value: gateway.serviceType },
              ...(values.eventing.enabled ? natsVariables(values) : []),
            ],
            startupProbe: { ...probe("/readyz"), periodSeconds: 1, failureThreshold: 60 },
            readinessProbe: { ...probe("/readyz"), periodSeconds: 5 },
            livenessProbe: { ...probe("/healthz"), periodSeconds: 20, timeoutSeconds: 10 },
            resources: {
              requests: { cpu: "20m", memory: "64Mi" },
              limits: { cpu: "1", memory: "512Mi" },
            },
            securityContext: containerSecurityContext,
          },
        ],
      },
    },
  };
}
