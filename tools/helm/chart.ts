/**
 * The Helm chart, made from the same objects that `spry install` applies: they are rendered once with marks in place of
 * values, and each mark becomes what Helm puts there.
 */
import { definitionObjects, configurationObject } from "../../packages/cli/src/install/objects.ts";
import { accessObjects } from "../../packages/cli/src/install/access.ts";
import { controllerObjects, webhookObjects } from "../../packages/cli/src/install/controller.ts";
import { eventingObjects } from "../../packages/cli/src/install/eventing-objects.ts";
import { isOfNats, natsName } from "../../packages/cli/src/install/nats-objects.ts";
import { dashboardObjects } from "../../packages/cli/src/install/dashboard.ts";
import { gatewayObjects } from "../../packages/cli/src/install/gateway.ts";
import { networkPolicies } from "../../packages/cli/src/install/network.ts";
import { type InstalledObject } from "../../packages/cli/src/install/parts.ts";
import { registryObjects } from "../../packages/cli/src/install/registry.ts";
import { defaultValues, type InstallValues } from "../../packages/cli/src/install/values.ts";
import { dump } from "js-yaml";

const imageOf = (name: string): string =>
  `{{ required "images.${name}: npm run images -- --values FILE writes it" .Values.images.${name} }}`;

/** Each mark as YAML writes it, quotes included, and what Helm puts there. */
const marks: [mark: RegExp, template: string][] = [
  [/'"@@images@@"'/g, "{{ .Values.images | toJson | quote }}"],
  [/'"@@buildEnvironment@@"'/g, "{{ .Values.buildEnvironment | toJson | quote }}"],
  [/'"@@cleaning@@"'/g, "{{ .Values.registry.cleaning | toJson | quote }}"],
  [/'@@registryAuthority@@'/g, "{{ .Values.registryCertificateAuthority | quote }}"],
  [/'@@plainRegistries@@'/g, '{{ join "," .Values.plainRegistries | quote }}'],
  [/value: '@@imagePullSecrets@@'/g, 'value: {{ join "," .Values.imagePullSecrets | quote }}'],
  [/'@@gatewayReplicas@@'/g, "{{ .Values.gateway.replicas }}"],
  [/'@@gatewayServiceType@@'/g, "{{ .Values.gateway.serviceType }}"],
  [/'@@eventingEnabled@@'/g, "{{ .Values.eventing.enabled | quote }}"],
  [/'@@eventingReplicas@@'/g, "{{ .Values.eventing.replicas }}"],
  [/'@@natsReplicas@@'/g, "{{ .Values.eventing.nats.replicas }}"],
  [/'"@@natsReplicas@@"'/g, "{{ .Values.eventing.nats.replicas | quote }}"],
  [
    /'"@@natsAllowPlaintext@@"'/g,
    "{{ or (not .Values.eventing.nats.servers) .Values.eventing.nats.allowPlaintext | quote }}",
  ],
  [/'@@natsImage@@'/g, "{{ .Values.eventing.nats.image }}"],
  [/'@@natsSize@@'/g, "{{ .Values.eventing.nats.storage.size }}"],
  [/@@natsCluster@@/g, '{{ include "spry.natsCluster" . }}'],
  [/'"@@natsServers@@"'/g, '{{ include "spry.natsServers" . | quote }}'],
  [
    /^( +)storageClassName: '@@natsClass@@'\n/gm,
    "{{- with .Values.eventing.nats.storage.storageClassName }}\n$1storageClassName: {{ . }}\n{{- end }}\n",
  ],
  [/'@@replicas@@'/g, "{{ .Values.replicas }}"],
  [/'@@memory@@'/g, "{{ .Values.memory }}"],
  [/'@@size@@'/g, "{{ .Values.registry.storage.size }}"],
  [/'@@serverless@@'/g, "{{ .Values.serverless | toJson }}"],
  [/'@@image\.(\w+)@@'/g, "$1"],
  [/'?@@nodePort@@'?/g, "{{ .Values.registry.nodePort }}"],
  [/'@@dashboardReplicas@@'/g, "{{ .Values.dashboard.replicas }}"],
  [/'@@dashboard\.([\w.]+)@@'/g, "{{ .Values.dashboard.$1 | quote }}"],
  [
    /'@@dashboardSecret@@'/g,
    '{{ .Values.dashboard.oidc.secretName | default "serverless-dashboard" }}',
  ],
  [/'?@@namespace@@'?/g, "{{ .Release.Namespace }}"],
  [
    /imagePullSecrets:\n +- name: '@@imagePullSecrets@@'/g,
    'imagePullSecrets: {{ include "spry.pullSecrets" . }}',
  ],
  [
    /persistentVolumeClaim:\n +claimName: serverless-docker-registry/g,
    '{{ include "spry.registryVolume" . }}',
  ],
  [
    /^( +)storageClassName: '@@storageClassName@@'\n/gm,
    "{{- with .Values.registry.storage.storageClassName }}\n$1storageClassName: {{ . }}\n{{- end }}\n",
  ],
];

/** Values whose every leaf is a mark. */
function marked(): InstallValues {
  const asMark = (name: string) => `@@${name}@@` as never;
  /** A map that is written as one JSON text. */
  const jsonMark = <T extends object>(name: string, map: T): T =>
    Object.defineProperty(map, "toJSON", { value: () => `@@${name}@@` });
  return {
    namespace: "@@namespace@@",
    memory: asMark("memory"),
    images: jsonMark("images", {
      controller: "@@image.controller@@",
      registry: "@@image.registry@@",
      gateway: "@@image.gateway@@",
      eventing: "@@image.eventing@@",
      dashboard: "@@image.dashboard@@",
    }),
    imagePullSecrets: ["@@imagePullSecrets@@"],
    replicas: asMark("replicas"),
    registry: {
      enabled: true,
      nodePort: asMark("nodePort"),
      storage: {
        kind: "persistentVolumeClaim",
        size: "@@size@@",
        storageClassName: "@@storageClassName@@",
      },
      cleaning: jsonMark("cleaning", { ...defaultValues.registry.cleaning }),
    },
    gateway: {
      enabled: true,
      replicas: asMark("gatewayReplicas"),
      serviceType: asMark("gatewayServiceType"),
    },
    eventing: {
      enabled: asMark("eventingEnabled"),
      replicas: asMark("eventingReplicas"),
      nats: {
        servers: [],
        allowPlaintext: asMark("natsAllowPlaintext"),
        replicas: asMark("natsReplicas"),
        image: "@@natsImage@@",
        storage: { size: "@@natsSize@@", storageClassName: "@@natsClass@@" },
      },
    },
    dashboard: {
      enabled: true,
      replicas: asMark("dashboardReplicas"),
      url: "@@dashboard.url@@",
      oidc: {
        issuer: "@@dashboard.oidc.issuer@@",
        clientId: "@@dashboard.oidc.clientId@@",
        secretName: "@@dashboardSecret@@",
        scopes: "@@dashboard.oidc.scopes@@",
        certificateAuthority: "@@dashboard.oidc.certificateAuthority@@",
      },
    },
    plainRegistries: ["@@plainRegistries@@"],
    registryCertificateAuthority: "@@registryAuthority@@",
    buildEnvironment: jsonMark("buildEnvironment", {}),
    serverless: asMark("serverless"),
  };
}

/** The chart's files by their paths in it. */
export function chartFiles(version: string): Record<string, string> {
  const values = marked();
  const storage = "eq .Values.registry.storage.kind";
  const registry = registryObjects(values).map((object) =>
    object.kind === "PersistentVolumeClaim"
      ? onlyIf(`${storage} "persistentVolumeClaim"`, templateOf(object))
      : templateOf(object),
  );
  const optional = (object: InstalledObject) => {
    const [, part] = /allow-to-(registry|gateway|eventing)$/.exec(object.metadata.name ?? "") ?? [];
    const text = templateOf(object);
    if (object.metadata.name?.endsWith("allow-to-nats"))
      return onlyIf("and .Values.eventing.enabled (not .Values.eventing.nats.servers)", text);
    return part ? onlyIf(`.Values.${part}.enabled`, text) : text;
  };
  const hooked = configurationObject(values);
  hooked.metadata.annotations = { "helm.sh/hook": "post-install" };
  return {
    "Chart.yaml": chartYaml(version),
    "values.yaml": valuesYaml(),
    ".helmignore": "*.tgz\n",
    "templates/_helpers.tpl": helpers,
    "templates/NOTES.txt": notes,
    "templates/definitions.yaml": documents(definitionObjects().map(templateOf)),
    "templates/access.yaml": documents(accessObjects(values.namespace).map(templateOf)),
    "templates/network.yaml": documents(networkPolicies(values).map(optional)),
    "templates/registry.yaml": onlyIf(".Values.registry.enabled", documents(registry)),
    "templates/controller.yaml": documents(controllerObjects(values).map(templateOf)),
    "templates/gateway.yaml": onlyIf(
      ".Values.gateway.enabled",
      documents(gatewayObjects(values).map(templateOf)).replace(
        / +- name: NATS_SERVERS\n[\s\S]*?key: natsToken\n/,
        (variables) => `{{- if .Values.eventing.enabled }}\n${variables}{{- end }}\n`,
      ),
    ),
    "templates/eventing.yaml": onlyIf(
      ".Values.eventing.enabled",
      documents(
        eventingObjects(values).map((object) =>
          isOfNats(object)
            ? onlyIf("not .Values.eventing.nats.servers", templateOf(object))
            : templateOf(object),
        ),
      ),
    ),
    "templates/dashboard.yaml": onlyIf(
      ".Values.dashboard.enabled",
      documents(dashboardObjects(values).map(templateOf)),
    ),
    "templates/webhooks.yaml": documents(webhookObjects(values.namespace).map(templateOf)),
    "templates/configuration.yaml": onlyIf(".Values.serverless", templateOf(hooked)),
  };
}

function templateOf(object: InstalledObject): string {
  const yaml = dump(object, { noRefs: true, lineWidth: -1 });
  if (yaml.includes("{{"))
    throw new Error(`making the chart: ${object.kind} has braces of its own`);
  let text = yaml;
  for (const [mark, template] of marks) {
    const isImage = template === "$1";
    text = isImage
      ? text.replace(mark, (_, name: string) => imageOf(name))
      : text.replace(mark, template);
  }
  const left = /@@[\w.]+@@/.exec(text)?.[0];
  if (left) throw new Error(`making the chart: nothing is known to take the place of ${left}`);
  return text;
}

const documents = (all: string[]): string => all.join("---\n");
const onlyIf = (condition: string, text: string): string =>
  `{{- if ${condition} }}\n${text}{{- end }}\n`;

const generated = "# Made by `npm run chart` from packages/cli/src/install.\n";

function chartYaml(version: string): string {
  return `${generated}apiVersion: v2
name: spry
description: Functions on Kubernetes
type: application
version: ${version}
appVersion: ${version}
kubeVersion: ">=1.30.0-0"
`;
}

function valuesYaml(): string {
  const { namespace: _namespace, ...values } = defaultValues;
  return `${generated}# What each means: packages/cli/src/install/values.ts. The images come from \`npm run images -- --to REGISTRY --values FILE\`.
${dump(values)}`;
}

const helpers = `{{- define "spry.pullSecrets" -}}
{{- $list := list -}}
{{- range .Values.imagePullSecrets }}{{ $list = append $list (dict "name" .) }}{{ end -}}
{{- $list | toJson -}}
{{- end }}

{{- define "spry.natsServers" -}}
{{- if .Values.eventing.nats.servers -}}
{{- join "," .Values.eventing.nats.servers -}}
{{- else -}}
nats://${natsName}.{{ .Release.Namespace }}.svc.cluster.local:4222
{{- end -}}
{{- end }}

{{- define "spry.natsCluster" -}}
{{- if gt (int .Values.eventing.nats.replicas) 1 -}}
include ./cluster.conf
{{- end -}}
{{- end }}

{{- define "spry.registryVolume" -}}
{{- $storage := .Values.registry.storage -}}
{{- if eq $storage.kind "emptyDir" -}}
emptyDir: {{ dict "sizeLimit" $storage.size | toJson }}
{{- else if eq $storage.kind "persistentVolumeClaim" -}}
persistentVolumeClaim: {{ dict "claimName" "serverless-docker-registry" | toJson }}
{{- else -}}
{{- fail (printf "registry.storage.kind %q: use persistentVolumeClaim or emptyDir" $storage.kind) -}}
{{- end -}}
{{- end }}
`;

const notes = `Spry {{ .Chart.AppVersion }} is installed in {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} get serverless,pods

Before \`helm uninstall\`: delete the Functions, then the configuration, which its controller lets go of:

  kubectl delete functions --all --all-namespaces
  kubectl delete serverlesses --all --all-namespaces
`;
