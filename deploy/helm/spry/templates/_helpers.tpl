{{- define "spry.pullSecrets" -}}
{{- $list := list -}}
{{- range .Values.imagePullSecrets }}{{ $list = append $list (dict "name" .) }}{{ end -}}
{{- $list | toJson -}}
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
