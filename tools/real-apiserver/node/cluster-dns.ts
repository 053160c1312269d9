/** CoreDNS as a cluster has it: a Deployment behind the Service `kube-dns`. */
import { type KubeClient, type KubeObject, type Resource } from "@spry/kube";
import { dnsImage } from "./images.ts";
import { clusterDns } from "./network.ts";
import { nameServers } from "./programs.ts";

const name = "coredns";
const namespace = "kube-system";
const labels = { "k8s-app": "kube-dns" };

function resource(apiVersion: string, kind: string, plural: string, namespaced = true): Resource {
  const [version = "", group = ""] = apiVersion.split("/").toReversed();
  return { group, version, kind, plural, namespaced };
}

const rbac = "rbac.authorization.k8s.io/v1";

export async function installClusterDns(client: KubeClient): Promise<void> {
  for (const [kind, object] of objects()) {
    await client.apply(kind, object, { fieldManager: "real-apiserver" });
  }
}

function objects(): [Resource, KubeObject][] {
  const metadata = { name, namespace };
  const subjects = [{ kind: "ServiceAccount", ...metadata }];
  return [
    [resource("v1", "ServiceAccount", "serviceaccounts"), { metadata }],
    [
      resource(rbac, "ClusterRole", "clusterroles", false),
      { metadata: { name }, rules: rules() } as KubeObject,
    ],
    [
      resource(rbac, "ClusterRoleBinding", "clusterrolebindings", false),
      {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
        subjects,
      } as KubeObject,
    ],
    [
      resource("v1", "ConfigMap", "configmaps"),
      { metadata, data: { Corefile: corefile() } } as KubeObject,
    ],
    [
      resource("v1", "Service", "services"),
      {
        metadata: { name: "kube-dns", namespace, labels },
        spec: {
          clusterIP: clusterDns,
          selector: labels,
          ports: [
            { name: "dns", port: 53, protocol: "UDP" },
            { name: "dns-tcp", port: 53, protocol: "TCP" },
          ],
        },
      } as KubeObject,
    ],
    [
      resource("apps/v1", "Deployment", "deployments"),
      { metadata, spec: deployment() } as KubeObject,
    ],
  ];
}

function rules() {
  const verbs = ["list", "watch"];
  return [
    { apiGroups: [""], resources: ["endpoints", "services", "pods", "namespaces"], verbs },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs },
  ];
}

/** Answers are kept for a second only: tests look for Services that were not there a moment ago. */
function corefile(): string {
  const servers = nameServers();
  const outside = servers.length > 0 ? `forward . ${servers.join(" ")}` : "";
  return `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      ttl 1
    }
    cache 1
    ${outside}
}
`;
}

function deployment() {
  return {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: name,
        dnsPolicy: "Default",
        containers: [
          {
            name,
            image: dnsImage,
            imagePullPolicy: "Never",
            args: ["-conf", "/etc/coredns/Corefile"],
            readinessProbe: { httpGet: { path: "/ready", port: 8181 }, periodSeconds: 1 },
            // Port 53 takes root, or a capability that only root passes on.
            securityContext: {
              runAsUser: 0,
              capabilities: { add: ["NET_BIND_SERVICE"], drop: ["ALL"] },
            },
            volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
          },
        ],
        volumes: [{ name: "config", configMap: { name } }],
      },
    },
  };
}
