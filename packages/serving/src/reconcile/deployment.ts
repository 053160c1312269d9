import { createHash } from "node:crypto";
import {
  knative,
  knativeAnnotations,
  knativeLabels,
  knativeNames,
  type Revision,
} from "@spry/function";
import {
  type Container,
  controllerRef,
  type Deployment,
  type PodTemplateSpec,
  type Probe,
  type Service,
} from "@spry/kube";
import { isSidecar } from "../admission/pod-spec.ts";
import { autoscalingGroup, durationIn, servingKeys } from "../annotations.ts";
import { initialScaleOf } from "../scaler/scale-spec.ts";
import { type Settings } from "../settings/settings.ts";
import { without } from "./context.ts";

export const deploymentHashLabel = "serving.knative.dev/deployment-hash";
const defaultContainer = "kubectl.kubernetes.io/default-container";
const defaultPort = 8080;
const portName = "user-port";
export const defaultProgressDeadlineMs = 600_000;

/** The labels and annotations that say how a Revision is routed: its Pods need not change with them. */
const routingLabels = [knativeLabels.route, knativeLabels.routingState];
const routingAnnotations = [
  "serving.knative.dev/lastPinned",
  knativeAnnotations.noGc,
  knativeAnnotations.routingStateModified,
  knativeAnnotations.routes,
];

export function servingContainer({ spec }: Revision): Container | undefined {
  const containers = spec.containers ?? [];
  return containers.find((each) => !isSidecar(each, containers)) ?? containers[0];
}

export function servingPort(revision: Revision): number {
  return servingContainer(revision)?.ports?.[0]?.containerPort || defaultPort;
}

export function progressDeadlineOf(revision: Revision): number {
  return durationIn(revision, servingKeys.progressDeadline) ?? defaultProgressDeadlineMs;
}

/** By image and container; an image that is not here runs as it is named. */
export type Digests = ReadonlyMap<string, string>;

/**
 * The Deployment of a Revision (knative.dev/serving/pkg/reconciler/revision/resources/deploy.go, without queue-proxy). Its
 * replicas are those to begin with; later the scaler writes them.
 */
export function desiredDeployment(
  revision: Revision,
  settings: Settings,
  digests: Digests,
): Deployment & { spec: NonNullable<Deployment["spec"]> } {
  const { name = "", namespace = "", uid = "", annotations } = revision.metadata;
  const labels = podLabels(revision);
  const kept = Object.fromEntries(
    Object.entries(without(annotations, routingAnnotations)).filter(
      ([key]) => !key.startsWith(autoscalingGroup),
    ),
  );
  const serving = servingContainer(revision)?.name;
  const template: PodTemplateSpec = {
    metadata: {
      labels,
      annotations: { ...kept, ...(serving ? { [defaultContainer]: serving } : {}) },
    },
    spec: podSpec(revision, settings, digests),
  };
  const progressDeadlineSeconds = Math.ceil(progressDeadlineOf(revision) / 1000);
  const hash = hashOf({ template, progressDeadlineSeconds, kept });
  return {
    metadata: {
      name: knativeNames.deployment(name),
      namespace,
      labels: { ...labels, [deploymentHashLabel]: hash },
      annotations: kept,
      ownerReferences: [controllerRef(knative.revisions, revision)],
    },
    spec: {
      replicas: initialScaleOf(revision, settings.autoscaler),
      selector: { matchLabels: { [knativeLabels.revisionUid]: uid } },
      progressDeadlineSeconds,
      revisionHistoryLimit: 0,
      // The old Pods serve until the new ones are ready.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: "25%" } },
      template,
    },
  };
}

function podLabels({ metadata }: Revision): Record<string, string> {
  const { name = "", uid = "", labels } = metadata;
  return {
    app: name,
    ...without(labels, routingLabels),
    [knativeLabels.revision]: name,
    [knativeLabels.revisionUid]: uid,
  };
}

function hashOf(value: object): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 10);
}

function podSpec(revision: Revision, settings: Settings, digests: Digests) {
  const {
    containerConcurrency: _concurrency,
    timeoutSeconds,
    responseStartTimeoutSeconds: _start,
    idleTimeoutSeconds: _idle,
    ...pod
  } = revision.spec;
  const links = pod.enableServiceLinks ?? settings.defaults.enableServiceLinks;
  return {
    ...pod,
    ...(links === undefined ? {} : { enableServiceLinks: links }),
    // Requests under way may take as long as they always may.
    terminationGracePeriodSeconds: timeoutSeconds ?? settings.defaults.timeoutSeconds,
    containers: (pod.containers ?? []).map((each) => container(each, revision, digests)),
    ...(pod.initContainers?.length
      ? {
          initContainers: pod.initContainers.map((each) => ({
            ...each,
            image: digests.get(each.name) ?? each.image ?? "",
          })),
        }
      : {}),
  };
}

function container(given: Container, revision: Revision, digests: Digests): Container {
  const { labels, name = "" } = revision.metadata;
  const { containers } = revision.spec;
  const port = servingPort(revision);
  const serves = !isSidecar(given, containers);
  const env = [
    ...(given.env ?? []),
    ...(serves ? [{ name: "PORT", value: String(port) }] : []),
    { name: "K_REVISION", value: name },
    { name: "K_CONFIGURATION", value: labels?.[knativeLabels.configuration] ?? "" },
    { name: "K_SERVICE", value: labels?.[knativeLabels.service] ?? "" },
  ];
  const probes = (["readinessProbe", "livenessProbe", "startupProbe"] as const).flatMap((kind) => {
    const probe = given[kind];
    return probe ? [[kind, serves ? probeAt(probe, port) : withPeriod(probe)]] : [];
  });
  return {
    ...given,
    image: digests.get(given.name) ?? given.image ?? "",
    env,
    ...(serves ? { ports: [{ name: portName, containerPort: port, protocol: "TCP" }] } : {}),
    ...Object.fromEntries(probes),
    // Why a container has ended is the end of what it wrote, if it says nothing else.
    terminationMessagePolicy: given.terminationMessagePolicy || "FallbackToLogsOnError",
  };
}

/** A probe that names no port is one of the port that serves; there, `http1` and `h2c` are called `user-port`. */
function probeAt(probe: Probe, port: number): Probe {
  const { httpGet, tcpSocket, grpc } = probe;
  const at = (given: string | number | undefined) =>
    typeof given === "number" && given > 0 ? given : port;
  return withPeriod({
    ...probe,
    ...(httpGet ? { httpGet: { ...httpGet, port: at(httpGet.port) } } : {}),
    ...(tcpSocket ? { tcpSocket: { ...tcpSocket, port: at(tcpSocket.port) } } : {}),
    ...(grpc ? { grpc: { ...grpc, port: at(grpc.port) } } : {}),
  });
}

/** A period of 0 asks for the shortest there is; a scheme may be in small letters, which Kubernetes refuses. */
function withPeriod(probe: Probe): Probe {
  const { httpGet } = probe;
  const scheme = httpGet?.scheme?.toUpperCase();
  return {
    ...probe,
    periodSeconds: probe.periodSeconds || 1,
    ...(httpGet && scheme ? { httpGet: { ...httpGet, scheme } } : {}),
  };
}

/** Selects the Pods of a Revision: what the gateway routes to. */
export function desiredPrivateService(revision: Revision): Service {
  const { name = "", namespace = "", uid = "" } = revision.metadata;
  const isH2c = servingContainer(revision)?.ports?.[0]?.name === "h2c";
  return {
    metadata: {
      name: knativeNames.privateService(name),
      namespace,
      labels: {
        ...podLabels(revision),
        [knativeLabels.serviceType]: "Private",
      },
      ownerReferences: [controllerRef(knative.revisions, revision)],
    },
    spec: {
      type: "ClusterIP",
      selector: { [knativeLabels.revisionUid]: uid },
      ports: [
        {
          name: isH2c ? "http2" : "http",
          ...(isH2c ? { appProtocol: "kubernetes.io/h2c" } : {}),
          port: 80,
          targetPort: servingPort(revision),
          protocol: "TCP",
        },
      ],
    },
  };
}
