{{- define "spry.pullSecrets" -}}
{{- $list := list -}}
{{- range .Values.imagePullSecrets }}{{ $list = append $list (dict "name" .) }}{{ end -}}
{{- $list | toJson -}}
{{- end }}

{{- define "spry.natsServers" -}}
{{- if .Values.eventing.nats.servers -}}
{{- join "," .Values.eventing.nats.servers -}}
{{- else -}}
nats://serverless-nats.{{ .Release.Namespace }}.svc.cluster.local:4222
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
