/** The controller: its Deployment, Services, priority and webhooks. */
import { admissionConfigurations } from "@spry/controller";
import { registryAuthorityVariable } from "@spry/function";
import { validatingConfigurationName } from "@spry/exposure";
import { servingWebhookNames } from "@spry/serving";
import { webhookServiceName } from "../in-cluster/webhook-certificate.ts";
import { controllerAccount } from "./access.ts";
import {
  containerSecurityContext,
  type InstalledObject,
  object,
  podSecurityContext,
} from "./parts.ts";
import { registryAddresses } from "./registry.ts";
import { type InstallValues, leastMemory } from "./values.ts";

export const controllerName = "serverless-controller";
export const controllerLabels = { "app.kubernetes.io/name": controllerName };
/** The Service that Git servers' pushes come to, by an Ingress or whatever the cluster has. */
export const gitWebhookName = "serverless-git-webhook";
/** The heap keeps clear of the memory limit: this much of it is the old generation's, and this many MiB half of the young one's. */
export const heapShare = { oldPercent: 60, semiSpaceMiB: 2 };
const nodeOptions = `--max-old-space-size-percentage=${heapShare.oldPercent} --max-semi-space-size=${heapShare.semiSpaceMiB}`;
const priorityClass = "serverless-priority";

export function controllerObjects(values: InstallValues): InstalledObject[] {
  const { namespace } = values;
  const metadata = { name: controllerName, namespace, labels: controllerLabels };
  const service = (name: string, ports: object[], annotations: Record<string, string> = {}) =>
    object(
      "v1",
      "Service",
      { name, namespace, labels: controllerLabels, annotations },
      { spec: { selector: controllerLabels, ports } },
    );
  return [
    object(
      "scheduling.k8s.io/v1",
      "PriorityClass",
      { name: priorityClass },
      { value: 2_000_000, globalDefault: false, description: "Spry's own Pods." },
    ),
    service(webhookServiceName, [{ name: "https", port: 443, targetPort: "webhook" }]),
    service(
      "serverless-controller-metrics",
      [{ name: "http-metrics", port: 8080, targetPort: "metrics" }],
      { "prometheus.io/scrape": "true", "prometheus.io/port": "8080" },
    ),
    service(gitWebhookName, [{ name: "http-git", port: 80, targetPort: "git" }]),
    object("apps/v1", "Deployment", metadata, { spec: deployment(values) }),
  ];
}

/**
 * Without the authority's certificate, which the controller adds: until then it is as if no webhook responded, and no
 * Function is written unchecked.
 */
export function webhookObjects(namespace: string): InstalledObject[] {
  const service = { name: webhookServiceName, namespace };
  const functions = admissionConfigurations({ caBundle: "", service }).map((configuration) => {
    const { apiVersion = "", kind = "", metadata, webhooks = [] } = configuration;
    const withoutBundle = webhooks.map(({ clientConfig: { service: where }, ...rest }) => ({
      ...rest,
      clientConfig: { service: where },
    }));
    return object(apiVersion, kind, metadata, { webhooks: withoutBundle });
  });
  // The controller fills these when the definitions of APIRules and of Knative Serving are ours.
  const empty = (kind: "Mutating" | "Validating", name: string) =>
    object("admissionregistration.k8s.io/v1", `${kind}WebhookConfiguration`, { name }, {});
  return [
    ...functions,
    empty("Validating", validatingConfigurationName),
    empty("Mutating", servingWebhookNames.mutating),
    empty("Validating", servingWebhookNames.validating),
  ];
}

function deployment(values: InstallValues) {
  const { imagePullSecrets } = values;
  return {
    replicas: values.replicas,
    selector: { matchLabels: controllerLabels },
    // The new one answers the webhooks before the old one goes.
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    template: {
      metadata: {
        labels: controllerLabels,
        annotations: { "sidecar.istio.io/inject": "false" },
      },
      spec: {
        serviceAccountName: controllerAccount,
        automountServiceAccountToken: true,
        enableServiceLinks: false,
        priorityClassName: priorityClass,
        terminationGracePeriodSeconds: 30,
        securityContext: podSecurityContext,
        imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
        containers: [container(values)],
        volumes: [{ name: "tmp", emptyDir: { sizeLimit: "256Mi" } }],
      },
    },
  };
}

function container(values: InstallValues) {
  const { pushAddress, pullAddress } = registryAddresses(values);
  const field = (name: string, fieldPath: string) => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  });
  const probe = (path: string) => ({ httpGet: { path, port: "health" } });
  return {
    name: "controller",
    image: values.images["controller"],
    imagePullPolicy: "IfNotPresent",
    env: [
      field("POD_NAME", "metadata.name"),
      field("POD_NAMESPACE", "metadata.namespace"),
      { name: "NODE_OPTIONS", value: nodeOptions },
      { name: "SPRY_IMAGES", value: JSON.stringify(values.images) },
      { name: "SPRY_REGISTRY_PUSH_ADDRESS", value: pushAddress },
      { name: "SPRY_REGISTRY_PULL_ADDRESS", value: pullAddress },
      { name: "SPRY_IMAGE_PULL_SECRETS", value: values.imagePullSecrets.join(",") },
      { name: "SPRY_PLAIN_REGISTRIES", value: values.plainRegistries.join(",") },
      { name: registryAuthorityVariable, value: values.registryCertificateAuthority },
      { name: "SPRY_EVENTING", value: String(values.eventing.enabled) },
      { name: "SPRY_BUILD_ENVIRONMENT", value: JSON.stringify(values.buildEnvironment) },
    ],
    ports: [
      { name: "webhook", containerPort: 8443 },
      { name: "metrics", containerPort: 8080 },
      { name: "health", containerPort: 8090 },
      { name: "git", containerPort: 8082 },
    ],
    startupProbe: { ...probe("/healthz"), periodSeconds: 1, failureThreshold: 60 },
    readinessProbe: { ...probe("/readyz"), periodSeconds: 2 },
    // The controller itself gives up earlier: healthzLivenessTimeout.
    livenessProbe: { ...probe("/healthz"), periodSeconds: 30, timeoutSeconds: 60 },
    resources: {
      requests: { cpu: "50m", memory: leastMemory },
      limits: { cpu: "1", memory: values.memory },
    },
    securityContext: containerSecurityContext,
    volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
  };
}
