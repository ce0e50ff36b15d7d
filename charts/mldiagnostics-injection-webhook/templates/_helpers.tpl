{{/* Names of templates are shared by all charts of an umbrella chart, hence the prefix. */}}
{{- define "mldiag-injection.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/*
Everything is named after the release, which is named after the chart unless the user says otherwise. A release may be called
`1.2`; a Service may not: its name has no dots and begins with a letter.
*/}}
{{- define "mldiag-injection.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = replace "." "-" .Release.Name }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "r%s" $name }}{{ end }}
{{- if not (contains (include "mldiag-injection.name" .) .Release.Name) }}{{ $name = printf "%s-%s" $name (include "mldiag-injection.name" .) }}{{ end }}
{{- end }}
{{- /* What is cut off still counts: two long names that begin alike stay different. */}}
{{- if gt (len $name) 50 }}{{ $name = printf "%s-%s" (trunc 41 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ end }}
{{- $name }}
{{- end }}

{{/* Known to whoever knows the release: deleting it by hand is the first step of a removal in two. */}}
{{- define "mldiag-injection.configurationName" -}}
{{- .Release.Name }}-mutating-webhook-config
{{- end }}

{{- define "mldiag-injection.selector" -}}
app.kubernetes.io/name: {{ include "mldiag-injection.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "mldiag-injection.labels" -}}
{{ include "mldiag-injection.selector" . }}
app.kubernetes.io/part-of: mldiagnostics
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mldiag-injection.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mldiag-injection.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.subject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag-injection.serviceAccount" . }}, namespace: {{ .Release.Namespace | quote }}}
{{- end }}

{{- define "mldiag-injection.image" -}}
{{- $name := .Values.image.repository }}
{{- with .Values.image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .) $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Restricted Pod Security, for the webhook and for `helm test`. */}}
{{- define "mldiag-injection.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "mldiag-injection.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The Secret whose files are served: filled by cert-manager or by the user. Empty: the webhook keeps one itself. */}}
{{- define "mldiag-injection.mountedSecret" -}}
{{- if eq .Values.certificates.mode "cert-manager" }}
{{- include "mldiag-injection.fullname" . }}-tls
{{- else if eq .Values.certificates.mode "provided" }}
{{- required "certificates.mode=provided needs certificates.provided.secretName" .Values.certificates.provided.secretName }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.ownSecret" -}}
{{- include "mldiag-injection.fullname" . }}-certificates
{{- end }}

{{/* Not the selector's labels: what tests is no webhook. */}}
{{- define "mldiag-injection.testLabels" -}}
app.kubernetes.io/name: {{ include "mldiag-injection.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: mldiagnostics
{{- end }}

{{/* Of what the test's pod needs: it is there before the pod, and gone after it. */}}
{{- define "mldiag-injection.testAnnotations" -}}
helm.sh/hook: test
helm.sh/hook-weight: "-1"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
