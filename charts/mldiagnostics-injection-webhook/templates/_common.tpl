{{/*
The same file is in both charts; only the prefix of the templates differs, because the charts of an umbrella chart share all
templates by name. A test compares the copies.
*/}}
{{/* `helm upgrade --reuse-values` from an older chart leaves out the values that are new here: absent is not false. */}}
{{- define "mldiag-injection.enabled" -}}
{{- if ne (toString .Values.enabled) "false" }}true{{ end }}
{{- end }}

{{- define "mldiag-injection.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/*
Every object is named after the release, which is named after the chart unless the user says otherwise. A release may be called
`1.2`; a Service may not: its name has no dots and begins with a letter.
*/}}
{{- define "mldiag-injection.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = replace "." "-" .Release.Name }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "r%s" $name }}{{ end }}
{{- if not (contains (include "mldiag-injection.name" .) .Release.Name) }}{{ $name = printf "%s-%s" $name (include "mldiag-injection.name" .) }}{{ end }}
{{- end }}
{{- /* Up to 33 characters of a release leave enough of the chart's name, and the objects of older charts keep their names. */}}
{{- $distinct := not (or .Values.fullnameOverride .Values.nameOverride (gt (len .Release.Name) 33)) }}
{{- if and (gt (len $name) 50) (not $distinct) }}
{{- /* What is cut off still counts: two long names that begin alike stay different. */}}
{{- $name = printf "%s-%s" (trunc 41 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- end }}
{{- $name | trunc 50 | trimSuffix "-" }}
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
{{- include "mldiag-injection.commonLabels" . }}
{{- end }}

{{/* The labels of the Deployment's pods. */}}
{{- define "mldiag-injection.podLabels" -}}
{{- include "mldiag-injection.refuseLabels" (list "podLabels" .Values.podLabels "app.kubernetes.io/name" "app.kubernetes.io/instance") -}}
{{ include "mldiag-injection.selector" . }}
{{- $labels := fromYaml (include "mldiag-injection.commonLabels" .) }}
{{ toYaml (merge (dict) (default dict .Values.podLabels) $labels (dict "app.kubernetes.io/part-of" "mldiagnostics")) }}
{{- end }}

{{/* The labels of what `helm test` makes. Not the selector's: a pod that tests does not serve. */}}
{{- define "mldiag-injection.testLabels" -}}
app.kubernetes.io/name: {{ include "mldiag-injection.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: mldiagnostics
{{- include "mldiag-injection.commonLabels" . }}
{{- end }}

{{/* commonLabels from a line of their own on, or nothing. Selectors and other policies rely on the chart's own labels. */}}
{{- define "mldiag-injection.commonLabels" -}}
{{- $own := list "helm.sh/chart" }}
{{- range list "name" "instance" "part-of" "version" "managed-by" }}
{{- $own = append $own (printf "app.kubernetes.io/%s" .) }}
{{- end }}
{{- include "mldiag-injection.refuseLabels" (concat (list "commonLabels" .Values.commonLabels) $own) }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Takes a list: the name of a value, its labels, and the labels that it must not have. */}}
{{- define "mldiag-injection.refuseLabels" -}}
{{- $value := first . }}
{{- $labels := default dict (index . 1) }}
{{- range slice . 2 }}
{{- if hasKey $labels . }}
{{- fail (printf "%s: the chart sets the label '%s' itself; remove it" $value .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mldiag-injection.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.subject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag-injection.serviceAccount" . | quote }}, namespace: {{ .Release.Namespace | quote }}}
{{- end }}

{{/* An umbrella chart sets one registry for all its charts: global.imageRegistry. */}}
{{- define "mldiag-injection.image" -}}
{{- $name := .Values.image.repository }}
{{- with default .Values.image.registry (.Values.global).imageRegistry }}
{{- $name = printf "%s/%s" (trimSuffix "/" .) $name }}
{{- end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Restricted Pod Security for the Deployment's pods and for `helm test`, with or without fixed ids. */}}
{{- define "mldiag-injection.podSecurity" -}}
{{- $ids := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- $given := .Values.podSecurityContext }}
{{- if not (hasKey .Values "enabled") }}
{{- /* Reused values of an older chart: helm drops a null, so only the absence of a newer value tells them apart. */}}
{{- $_ := set $context "fsGroupChangePolicy" "OnRootMismatch" }}
{{- range $ids }}{{ $_ := set $context . 65532 }}{{ end }}
{{- else if kindIs "map" $given }}
{{- $context = dict }}
{{- range $key, $value := $given }}
{{- if not (or (kindIs "invalid" $value) (and (has $key $ids) (kindIs "bool" $value))) }}
{{- $_ := set $context $key $value }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{- define "mldiag-injection.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* extraEnv from a line of its own on. The API server would keep the last of two equal names without a word. */}}
{{- define "mldiag-injection.extraEnv" -}}
{{- $own := list }}
{{- range include "mldiag-injection.env" . | fromYamlArray }}{{ $own = append $own .name }}{{ end }}
{{- $extra := list }}
{{- range .Values.extraEnv }}
{{- if has .name $own }}
{{- fail (printf "extraEnv: the chart sets '%s' itself; remove it and set the chart's value for it, see values.yaml" .name) }}
{{- else if has .name $extra }}
{{- fail (printf "extraEnv: '%s' is there twice; keep one of them" .name) }}
{{- end }}
{{- $extra = append $extra .name }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
