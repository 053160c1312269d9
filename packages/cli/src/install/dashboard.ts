/** The dashboard in a cluster: a Pod without a token, which passes each user's own credential on (docs/adr/0023-dashboard.md). */
import { isSafeUrl } from "@spry/dashboard";
import { apiServerAuthority } from "../in-cluster/dashboard-environment.ts";
import { version } from "../version.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { type InstallValues } from "./values.ts";

export interface DashboardValues {
  /** Whether it is installed. Without it, `spry dashboard` serves it on the user's machine. */
  enabled: boolean;
  replicas: number;
  /** How browsers reach it (`https://spry.example.com`). Empty: by `kubectl port-forward` only. */
  url: string;
  /** A login at an OpenID Connect provider that the API server trusts; without an issuer, users log in with tokens. */
  oidc: {
    issuer: string;
    clientId: string;
    /** A Secret in the namespace with the key `clientSecret`; empty for a public client. */
    secretName: string;
    /** Besides `openid`; separated by spaces. */
    scopes: string;
    /** PEM, of a provider whose certificate is not publicly trusted. */
    certificateAuthority: string;
  };
}

export const defaultDashboardValues: DashboardValues = {
  enabled: false,
  replicas: 1,
  url: "",
  oidc: { issuer: "", clientId: "", secretName: "", scopes: "email", certificateAuthority: "" },
};

/** Why the dashboard could not start with these values, and the way out. */
export function dashboardProblem({
  url,
  oidc,
}: DashboardValues): [problem: string, wayOut: string] | undefined {
  const urls = { "dashboard.url": url, "dashboard.oidc.issuer": oidc.issuer };
  for (const [field, text] of Object.entries(urls)) {
    const parsed = URL.parse(text);
    if (text !== "" && !(parsed && isSafeUrl(parsed)))
      return [`${field} ${text} is not a URL with https`, "http is for loopback addresses only"];
  }
  if (oidc.issuer === "") return undefined;
  const missing = url === "" ? "url" : oidc.clientId === "" ? "oidc.clientId" : undefined;
  return missing === undefined
    ? undefined
    : [`dashboard.oidc.issuer is set, and dashboard.${missing} is not`, "logins need both"];
}

const name = "serverless-dashboard";
const labels = { "app.kubernetes.io/name": name };
const port = 8080;

export function dashboardObjects(values: InstallValues): InstalledObject[] {
  const { namespace, dashboard } = values;
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
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

function deployment({ dashboard, images, imagePullSecrets }: InstallValues) {
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
            ],
            securityContext: containerSecurityContext,
          },
        ],
        // Only whose certificate the API server has: the namespace's ConfigMap, not a ServiceAccount's token.
        volumes: [{ name: "api-server", configMap: { name: "kube-root-ca.crt" } }],
      },
    },
  };
}
