/** The dashboard in a cluster: a Pod without a token, which passes each user's own credential on (docs/adr/0023-dashboard.md). */
import { apiServerAuthority } from "../in-cluster/dashboard-environment.ts";
import { usageTokenMount, usageTokenVolume } from "../in-cluster/usage-token.ts";
import { version } from "../version.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { dashboardLabels, dashboardName, gatewayLabels, gatewayPodsName } from "./names.ts";
import { registryUsageUrl } from "./registry.ts";
import { type InstallValues } from "./values.ts";

const name = dashboardName;
const labels = dashboardLabels;
const port = 8080;

export function dashboardObjects(values: InstallValues): InstalledObject[] {
  const { namespace, dashboard, gateway } = values;
  if (!dashboard.enabled) return [];
  const account = { name, namespace };
  const metadata = { ...account, labels };
  return [
    // No role is bound to it, and its Pods do not get its token.
    object("v1", "ServiceAccount", account, { automountServiceAccountToken: false }),
    object("v1", "Service", metadata, {
      spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: "http" }] },
    }),
    object(
      "networking.k8s.io/v1",
      "NetworkPolicy",
      { name: "kyma-project.io--serverless-allow-to-dashboard", namespace },
      {
        spec: {
          podSelector: { matchLabels: labels },
          policyTypes: ["Ingress", "Egress"],
          ingress: [{ ports: [{ port, protocol: "TCP" }] }],
          // The API server and the identity provider, wherever those are, and name servers.
          egress: [{ ports: [{ protocol: "TCP" }, { port: 53, protocol: "UDP" }] }],
        },
      },
    ),
    // Each gateway counts for itself: a page shows the sum.
    ...(gateway.enabled
      ? [
          object(
            "v1",
            "Service",
            { name: gatewayPodsName, namespace },
            { spec: { clusterIP: "None", selector: gatewayLabels, ports: [{ port: 8090 }] } },
          ),
        ]
      : []),
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

function deployment(values: InstallValues) {
  const { namespace, dashboard, gateway, registry, images, imagePullSecrets } = values;
  const probe = { httpGet: { path: "/healthz", port: "http" } };
  const { url, oidc } = dashboard;
  return {
    replicas: dashboard.replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels, annotations: { "sidecar.istio.io/inject": "false" } },
      spec: {
        serviceAccountName: name,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: podSecurityContext,
        imagePullSecrets: imagePullSecrets.map((each) => ({ name: each })),
        containers: [
          {
            name: "dashboard",
            image: images["dashboard"],
            imagePullPolicy: "IfNotPresent",
            ports: [{ name: "http", containerPort: port }],
            env: [
              { name: "SPRY_VERSION", value: version },
              { name: "SPRY_DASHBOARD_URL", value: url },
              ...(gateway.enabled
                ? [{ name: "SPRY_GATEWAY_PODS", value: `${gatewayPodsName}.${namespace}.svc` }]
                : []),
              ...(registry.enabled
                ? [{ name: "SPRY_REGISTRY_USAGE", value: registryUsageUrl(namespace) }]
                : []),
              { name: "SPRY_OIDC_ISSUER", value: oidc.issuer },
              { name: "SPRY_OIDC_CLIENT_ID", value: oidc.clientId },
              { name: "SPRY_OIDC_SCOPES", value: oidc.scopes },
              { name: "SPRY_OIDC_CA", value: oidc.certificateAuthority },
              {
                name: "SPRY_OIDC_CLIENT_SECRET",
                // A public client has none: then no such Secret exists.
                valueFrom: {
                  secretKeyRef: {
                    name: oidc.secretName || name,
                    key: "clientSecret",
                    optional: true,
                  },
                },
              },
            ],
            startupProbe: { ...probe, periodSeconds: 1, failureThreshold: 60 },
            readinessProbe: { ...probe, periodSeconds: 5 },
            livenessProbe: { ...probe, periodSeconds: 20, timeoutSeconds: 10 },
            resources: {
              requests: { cpu: "10m", memory: "48Mi" },
              limits: { cpu: "500m", memory: "256Mi" },
            },
            volumeMounts: [
              {
                name: "api-server",
                mountPath: apiServerAuthority.replace(/\/[^/]+$/, ""),
                readOnly: true,
              },
              usageTokenMount,
            ],
            securityContext: containerSecurityContext,
          },
        ],
        // Only whose certificate the API server has: the namespace's ConfigMap, not a ServiceAccount's token.
        volumes: [
          { name: "api-server", configMap: { name: "kube-root-ca.crt" } },
          usageTokenVolume,
        ],
      },
    },
  };
}
