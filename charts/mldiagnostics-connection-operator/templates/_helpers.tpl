{{- define "mldiag.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/*
Everything is named after the release, which is named after the chart unless the user says otherwise. A release may be called
`1.2`; a Service may not: its name has no dots and begins with a letter.
*/}}
{{- define "mldiag.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = replace "." "-" .Release.Name }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "r%s" $name }}{{ end }}
{{- if not (contains (include "mldiag.name" .) .Release.Name) }}{{ $name = printf "%s-%s" $name (include "mldiag.name" .) }}{{ end }}
{{- end }}
{{- /* What is cut off still counts: two long names that begin alike stay different. */}}
{{- if gt (len $name) 50 }}{{ $name = printf "%s-%s" (trunc 41 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ end }}
{{- $name }}
{{- end }}

{{- define "mldiag.selector" -}}
app.kubernetes.io/name: {{ include "mldiag.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "mldiag.labels" -}}
{{ include "mldiag.selector" . }}
app.kubernetes.io/part-of: mldiagnostics
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mldiag.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mldiag.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mldiag.image" -}}
{{- $name := .Values.image.repository }}
{{- with .Values.image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .) $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Restricted Pod Security, for the operator and for `helm test`. */}}
{{- define "mldiag.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "mldiag.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "mldiag.resources" -}}
{{- $limit := add (mul 2 (int64 .Values.policy.maxTraceBytes)) (mul 256 1024 1024) }}
{{- $computed := dict "limits" (dict "memory" (printf "%dMi" (div $limit 1048576))) }}
{{- toYaml (mergeOverwrite $computed (deepCopy .Values.resources)) }}
{{- end }}

{{- define "mldiag.volume" -}}
{{- $volume := .Values.volume }}
{{- if or $volume.existingClaim $volume.claim.enabled -}}
persistentVolumeClaim: {claimName: {{ default (include "mldiag.fullname" .) $volume.existingClaim }}}
{{- else -}}
emptyDir: {sizeLimit: {{ $volume.temporarySize }}}
{{- end }}
{{- end }}

{{/* What the operator and `helm test` share: where they are and what they may do. */}}
{{- define "mldiag.env" -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
- {name: MLDIAG_POLICY_FILE, value: /etc/mldiagnostics/policy.json}
- {name: MLDIAG_VOLUME_ROOT, value: /var/lib/mldiagnostics}
- {name: MLDIAG_LOG_LEVEL, value: {{ .Values.log.level }}}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mldiag.mounts" -}}
- {name: policy, mountPath: /etc/mldiagnostics, readOnly: true}
- {name: profiles, mountPath: /var/lib/mldiagnostics}
- {name: tmp, mountPath: /tmp}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mldiag.volumes" -}}
- name: policy
  configMap: {name: {{ include "mldiag.fullname" . }}-policy}
- name: profiles
  {{- include "mldiag.volume" . | nindent 2 }}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
