/** The NATS servers that keep events in a cluster until they are delivered, and where they are for programs that write to them. */
import { eventingSecretName, externalKeys, natsTokenKey } from "../in-cluster/eventing-token.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { field, spread } from "./pod-parts.ts";
import { type InstallValues } from "./values.ts";

export const natsName = "serverless-nats";
export const natsLabels = { "app.kubernetes.io/name": natsName };
const ports = { client: 4222, route: 6222, monitor: 8222 };
/** The most that may be; with one, the others are not named. */
const maxServers = 3;

export const isOfNats = ({ metadata }: InstalledObject): boolean =>
  metadata.name?.startsWith(natsName) === true;

const token = (name: string) => ({
  name,
  // The controller makes the Secret; until then the Pod waits.
  valueFrom: { secretKeyRef: { name: eventingSecretName, key: natsTokenKey } },
});
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

/** The installation's own servers. */
export function natsObjects(values: InstallValues): InstalledObject[] {
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
