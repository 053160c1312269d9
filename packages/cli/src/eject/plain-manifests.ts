/** A Function as objects that every Kubernetes knows. */
import {
  environmentOf,
  type Function,
  type FunctionSchedule,
  resolveResources,
} from "@spry/function";

/** Where the status names none yet. */
const defaultProfile = "L";
const callerImage = "curlimages/curl:8.11.1";

/** By the file that they belong in. */
export function plainManifests(fn: Function, app: string): Record<string, object[]> {
  const { scaleConfig: scale, schedules = [] } = fn.spec;
  const { namespace } = fn.metadata;
  const lowest = Math.max(1, scale?.minReplicas ?? 1);
  const isScaled = (scale?.maxReplicas ?? 1) > lowest;
  return {
    deployment: [deployment(fn, app)],
    service: [service(app, namespace)],
    ...(isScaled && {
      autoscaler: [autoscaler(app, namespace, lowest, scale?.maxReplicas ?? lowest)],
    }),
    ...(schedules.length > 0 && {
      schedules: schedules.map((each) => cronJob(app, namespace, each)),
    }),
  };
}

const labelsOf = (app: string) => ({ "app.kubernetes.io/name": app });

function deployment(fn: Function, app: string) {
  const { spec, metadata, status } = fn;
  const env = environmentOf(fn, { traceCollectorEndpoint: "", publisherProxyAddress: "" });
  const mounts = spec.secretMounts ?? [];
  const { resources } = resolveResources(
    "function",
    spec.resourceConfiguration?.function,
    status?.functionResourceProfile ?? defaultProfile,
  );
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: app, namespace: metadata.namespace, labels: labelsOf(app) },
    spec: {
      // None of them runs where requests do not start it.
      replicas: Math.max(1, status?.replicas ?? spec.replicas ?? 1),
      selector: { matchLabels: labelsOf(app) },
      template: {
        metadata: {
          labels: { ...spec.labels, ...labelsOf(app) },
          ...(spec.annotations && { annotations: spec.annotations }),
        },
        spec: {
          containers: [
            {
              name: "function",
              image: `${app}:latest`,
              env,
              ports: [{ containerPort: 8080 }],
              readinessProbe: { httpGet: { path: "/healthz", port: 8080 } },
              resources,
              ...(mounts.length > 0 && {
                volumeMounts: mounts.map(({ mountPath }, index) => ({
                  name: `secret-${index}`,
                  mountPath,
                  readOnly: true,
                })),
              }),
            },
          ],
          ...(mounts.length > 0 && {
            volumes: mounts.map(({ secretName }, index) => ({
              name: `secret-${index}`,
              secret: { secretName },
            })),
          }),
        },
      },
    },
  };
}

const service = (app: string, namespace: string | undefined) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: app, namespace, labels: labelsOf(app) },
  spec: { selector: labelsOf(app), ports: [{ name: "http", port: 80, targetPort: 8080 }] },
});

const autoscaler = (app: string, namespace: string | undefined, min: number, max: number) => ({
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: app, namespace, labels: labelsOf(app) },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: app },
    minReplicas: min,
    maxReplicas: max,
    metrics: [
      {
        type: "Resource",
        resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
      },
    ],
  },
});

function cronJob(app: string, namespace: string | undefined, schedule: FunctionSchedule) {
  const { name, cron, timeZone, suspend, overlap, payload = "", path = "/" } = schedule;
  const contentType = schedule.contentType ?? "application/json";
  const call = ["--fail", "--silent", "--show-error", "--data-raw", payload];
  const headers = [`content-type: ${contentType}`, `x-schedule-name: ${name}`];
  return {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name: `${app}-${name}`.slice(0, 52), namespace, labels: labelsOf(app) },
    spec: {
      schedule: cron,
      timeZone: timeZone ?? "Etc/UTC",
      ...(suspend && { suspend }),
      concurrencyPolicy: overlap === "Skip" ? "Forbid" : "Allow",
      startingDeadlineSeconds: schedule.startingDeadlineSeconds ?? 300,
      jobTemplate: {
        spec: {
          backoffLimit: schedule.retries ?? 0,
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [
                {
                  name: "call",
                  image: callerImage,
                  args: [
                    ...call,
                    ...headers.flatMap((each) => ["--header", each]),
                    `http://${app}${path}`,
                  ],
                },
              ],
            },
          },
        },
      },
    },
  };
}
