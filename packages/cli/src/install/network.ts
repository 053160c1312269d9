/** What may connect to and from Spry's own Pods; everything else is closed (docs/compatibility.md#network-policies). */
import { administrationPort } from "./administration.ts";
import { controllerLabels } from "./controller.ts";
import { eventingLabels } from "./eventing-objects.ts";
import { natsLabels } from "./nats-objects.ts";
import { callerPorts, gatewayLabels } from "./gateway.ts";
import { dashboardLabels } from "./names.ts";
import { type InstalledObject, object } from "./parts.ts";
import { registryLabels } from "./registry.ts";
import { type InstallValues } from "./values.ts";

const prefix = "kyma-project.io--serverless";

export function networkPolicies({
  namespace,
  registry,
  gateway,
  eventing,
}: InstallValues): InstalledObject[] {
  const policy = (name: string, labels: Record<string, string>, spec: object) =>
    object(
      "networking.k8s.io/v1",
      "NetworkPolicy",
      { name: `${prefix}-${name}`, namespace },
      { spec: { podSelector: { matchLabels: labels }, ...spec } },
    );
  const ports = (...numbers: number[]) => numbers.map((port) => ({ port, protocol: "TCP" }));
  return [
    // The API server and the kubelet are not Pods: where they connect from cannot be selected.
    policy("allow-webhook-and-metrics", controllerLabels, {
      policyTypes: ["Ingress"],
      ingress: [{ ports: ports(8443, 8080, 8082, 8090) }],
    }),
    // The API server, name servers, and Git servers, wherever those are.
    policy("allow-egress", controllerLabels, {
      policyTypes: ["Egress"],
      egress: [{}],
    }),
    ...(gateway.enabled
      ? [
          policy("allow-to-gateway", gatewayLabels, {
            policyTypes: ["Ingress", "Egress"],
            ingress: [{ ports: [...ports(8080, 8443, 8090), callerPorts] }],
            // The API server, and Functions in every namespace.
            egress: [{}],
          }),
        ]
      : []),
    ...(eventing.enabled
      ? [
          // Publishers in every namespace; the API server, sinks in every namespace, and NATS servers.
          policy("allow-to-eventing", eventingLabels, {
            policyTypes: ["Ingress", "Egress"],
            ingress: [{ ports: ports(8080, 8090, administrationPort) }],
            egress: [{}],
          }),
        ]
      : []),
    ...(eventing.enabled && eventing.nats.servers.length === 0
      ? [
          policy("allow-to-nats", natsLabels, {
            policyTypes: ["Ingress", "Egress"],
            ingress: [
              {
                ports: ports(4222),
                from: [eventingLabels, gatewayLabels].map((matchLabels) => ({
                  podSelector: { matchLabels },
                })),
              },
              { ports: ports(6222), from: [{ podSelector: { matchLabels: natsLabels } }] },
              // Not the monitoring port, which asks for no token: kubelets' probes come from the node, which no policy stops.
            ],
            egress: [
              { ports: ports(6222), to: [{ podSelector: { matchLabels: natsLabels } }] },
              { ports: [{ port: 53, protocol: "UDP" }, ...ports(53)] },
            ],
          }),
        ]
      : []),
    ...(registry.enabled
      ? [
          // Builders in every namespace push, and nodes pull. It asks the API server, wherever that is, what is in use.
          policy("allow-to-registry", registryLabels, {
            policyTypes: ["Ingress", "Egress"],
            ingress: [
              { ports: ports(5000, 5001) },
              { ports: ports(5002), from: [{ podSelector: { matchLabels: dashboardLabels } }] },
            ],
            egress: [{ ports: [{ protocol: "TCP" }] }],
          }),
        ]
      : []),
  ];
}
