/** Events in a cluster: what accepts and delivers them, and the NATS servers that keep them until then. */
import { functions } from "@spry/function";
import { eventingSecretName, externalKeys, natsTokenKey } from "../in-cluster/eventing-token.ts";
import { controllerAccount } from "./access.ts";
import {
  administrationObjects,
  administrationPort,
  administrationRules,
  administrationSecretRules,
} from "./administration.ts";
import { eventingRules, subscriptionRules } from "./eventing.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { gatewayName } from "./names.ts";
import { rule, type Rule } from "./rule.ts";
import { type InstallValues } from "./values.ts";

export const eventingName = "serverless-eventing";
export const eventingLabels = { "app.kubernetes.io/name": eventingName };
export const natsName = "serverless-nats";
export const natsLabels = { "app.kubernetes.io/name": natsName };
const group = "rbac.authorization.k8s.io";
const rbac = `${group}/v1`;
const ports = { client: 4222, route: 6222, monitor: 8222 };
/** The most that may be; with one, the others are not named. */
const maxServers = 3;

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

/** The gateway's, which accepts calls that may wait. */
const gatewayCallRules: Rule[] = [rule("", ["namespaces"], "get")];

export const isOfNats = ({ metadata }: InstalledObject): boolean =>
  metadata.name?.startsWith(natsName) === true;

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

const token = (name: string) => ({
  name,
  // The controller makes the Secret; until then the Pod waits.
  valueFrom: { secretKeyRef: { name: eventingSecretName, key: natsTokenKey } },
});
const field = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { fieldPath } },
});

/** Not all on one node, if there are several. */
const spread = (labels: object) => [
  {
    maxSkew: 1,
    topologyKey: "kubernetes.io/hostname",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: labels },
  },
];

/** Where the queue is, for programs that write to it. */
export function natsVariables({ namespace, eventing }: InstallValues) {
  const { nats } = eventing;
  const own = [`nats://${natsName}.${namespace}.svc.cluster.local:${ports.client}`];
  return [
    {
      name: "NATS_SERVERS",
      value: serversText(nats.servers.length > 0 ? nats.servers : own, nats.replicas),
    },
    { name: "NATS_PLAINTEXT", value: JSON.stringify(mayBePlain(nats)) },
    { name: "NATS_REPLICAS", value: JSON.stringify(nats.replicas) },
    ...Object.entries(externalKeys).map(([name, key]) => ({
      name: `NATS_EXTERNAL_${name.toUpperCase()}`,
      valueFrom: { secretKeyRef: { name: eventingSecretName, key, optional: true } },
    })),
    token("NATS_TOKEN"),
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

/** In the chart the number of replicas is a mark, and so are the servers. */
function serversText(servers: readonly string[], replicas: unknown): string {
  return typeof replicas === "number" ? servers.join(",") : JSON.stringify("@@natsServers@@");
}

/** The installation's own servers may be reached without TLS: network policies let only its own Pods to them. */
function mayBePlain({ servers, allowPlaintext }: InstallValues["eventing"]["nats"]): unknown {
  // In the chart it is a mark.
  if (typeof allowPlaintext !== "boolean") return allowPlaintext;
  return servers.length === 0 || allowPlaintext;
}

function natsObjects(values: InstallValues): InstalledObject[] {
  const { namespace, eventing } = values;
  const { replicas } = eventing.nats;
  const metadata = { name: natsName, namespace, labels: natsLabels };
  return [
    object("v1", "ConfigMap", metadata, {
      data: { "nats.conf": natsConfiguration(replicas), "cluster.conf": clusterConfiguration },
    }),
    object("v1", "Service", metadata, {
      spec: {
        clusterIP: "None",
        // They find each other before they are ready.
        publishNotReadyAddresses: true,
        selector: natsLabels,
        ports: [
          { name: "tcp-client", port: ports.client, targetPort: "client" },
          { name: "tcp-route", port: ports.route, targetPort: "route" },
        ],
      },
    }),
    object("apps/v1", "StatefulSet", metadata, { spec: statefulSet(values) }),
  ];
}

/**
 * Each write is synced before it is acknowledged: with one server nothing else keeps it through a power cut, and with three
 * all may lose power at once.
 */
function natsConfiguration(replicas: unknown): string {
  const cluster =
    typeof replicas === "number"
      ? replicas > 1
        ? "include ./cluster.conf"
        : ""
      : "@@natsCluster@@";
  return `server_name: $POD_NAME
listen: "0.0.0.0:${ports.client}"
http: "0.0.0.0:${ports.monitor}"
max_payload: 4MB
authorization { token: $NATS_TOKEN, timeout: 5 }
jetstream { store_dir: "/data", max_file_store: 100GB, sync_interval: always }
lame_duck_duration: 30s
lame_duck_grace_period: 2s
${cluster === "" ? "" : `${cluster}\n`}`;
}

const clusterConfiguration = `cluster {
  name: ${natsName}
  listen: "0.0.0.0:${ports.route}"
  authorization { user: spry, password: $NATS_TOKEN, timeout: 5 }
  routes: [$NATS_ROUTE_0, $NATS_ROUTE_1, $NATS_ROUTE_2]
}
`;

function statefulSet({ eventing, imagePullSecrets, namespace }: InstallValues) {
  const { nats } = eventing;
  const probe = (path: string) => ({ httpGet: { path, port: "monitor" } });
  const route = (index: number) => ({
    name: `NATS_ROUTE_${index}`,
    value: `"nats://spry:$(NATS_TOKEN)@${natsName}-${index}.${natsName}.${namespace}.svc.cluster.local:${ports.route}"`,
  });
  return {
    serviceName: natsName,
    replicas: nats.replicas,
    // Each of them waits for the others.
    podManagementPolicy: "Parallel",
    selector: { matchLabels: natsLabels },
    template: {
      metadata: { labels: natsLabels, annotations: { "sidecar.istio.io/inject": "false" } },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        topologySpreadConstraints: spread(natsLabels),
        terminationGracePeriodSeconds: 60,
        securityContext: podSecurityContext,
        imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
        containers: [
          {
            name: "nats",
            image: nats.image,
            imagePullPolicy: "IfNotPresent",
            args: ["--config", "/etc/nats/nats.conf"],
            env: [
              field("POD_NAME", "metadata.name"),
              token("NATS_TOKEN"),
              ...Array.from({ length: maxServers }, (_, index) => route(index)),
            ],
            ports: [
              { name: "client", containerPort: ports.client },
              { name: "route", containerPort: ports.route },
              { name: "monitor", containerPort: ports.monitor },
            ],
            startupProbe: {
              ...probe("/healthz?js-enabled-only=true"),
              periodSeconds: 1,
              failureThreshold: 90,
            },
            readinessProbe: { ...probe("/healthz?js-server-only=true"), periodSeconds: 5 },
            livenessProbe: {
              ...probe("/healthz?js-enabled-only=true"),
              periodSeconds: 20,
              timeoutSeconds: 10,
            },
            resources: {
              requests: { cpu: "20m", memory: "64Mi" },
              limits: { cpu: "2", memory: "512Mi" },
            },
            securityContext: containerSecurityContext,
            volumeMounts: [
              { name: "data", mountPath: "/data" },
              { name: "configuration", mountPath: "/etc/nats" },
            ],
          },
        ],
        volumes: [{ name: "configuration", configMap: { name: natsName } }],
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: nats.storage.size } },
          ...(nats.storage.storageClassName
            ? { storageClassName: nats.storage.storageClassName }
            : {}),
        },
      },
    ],
  };
}
