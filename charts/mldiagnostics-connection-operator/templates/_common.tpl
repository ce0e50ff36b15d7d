{{/*
Both charts have this file. Only the prefix of the template names differs, because all charts of an umbrella chart share one
namespace of templates. A test compares the copies.
*/}}
{{/* Absent is not false: `helm upgrade --reuse-values` from an older chart lacks the values that are new here. */}}
{{- define "mldiag.enabled" -}}
{{- if ne (toString .Values.enabled) "false" }}true{{ end }}
{{- end }}

{{- define "mldiag.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/*
Base name of all objects: the release, followed by the chart's name unless the release contains it. A release may be called
`1.2`, but the name of a Service has no dots and starts with a letter.
*/}}
{{- define "mldiag.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = replace "." "-" .Release.Name }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "r%s" $name }}{{ end }}
{{- if not (contains (include "mldiag.name" .) .Release.Name) }}{{ $name = printf "%s-%s" $name (include "mldiag.name" .) }}{{ end }}
{{- end }}
{{- /* A release of up to 33 characters leaves enough of the chart's name; objects of older charts keep their names. */}}
{{- $distinct := not (or .Values.fullnameOverride .Values.nameOverride (gt (len .Release.Name) 33)) }}
{{- if and (gt (len $name) 50) (not $distinct) }}
{{- /* The hash keeps two long names with the same start apart. */}}
{{- $name = printf "%s-%s" (trunc 41 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- end }}
{{- $name | trunc 50 | trimSuffix "-" }}
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
{{- include "mldiag.commonLabels" . }}
{{- end }}

{{/* Labels of the Deployment's pods. */}}
{{- define "mldiag.podLabels" -}}
{{- include "mldiag.refuseLabels" (list "podLabels" .Values.podLabels "app.kubernetes.io/name" "app.kubernetes.io/instance") -}}
{{ include "mldiag.selector" . }}
{{- $labels := fromYaml (include "mldiag.commonLabels" .) }}
{{ toYaml (merge (dict) (default dict .Values.podLabels) $labels (dict "app.kubernetes.io/part-of" "mldiagnostics")) }}
{{- end }}

{{/* Labels of the objects of `helm test`. They differ from the selector, so that no Service selects the test's pod. */}}
{{- define "mldiag.testLabels" -}}
app.kubernetes.io/name: {{ include "mldiag.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: mldiagnostics
{{- include "mldiag.commonLabels" . }}
{{- end }}

{{/* commonLabels, starting with a line break; empty if there are none. Selectors rely on the chart's own labels. */}}
{{- define "mldiag.commonLabels" -}}
{{- $own := list "helm.sh/chart" }}
{{- range list "name" "instance" "part-of" "version" "managed-by" }}
{{- $own = append $own (printf "app.kubernetes.io/%s" .) }}
{{- end }}
{{- include "mldiag.refuseLabels" (concat (list "commonLabels" .Values.commonLabels) $own) }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Fails if labels contain reserved ones. Argument: list of the value's name, its labels, and the reserved labels. */}}
{{- define "mldiag.refuseLabels" -}}
{{- $value := first . }}
{{- $labels := default dict (index . 1) }}
{{- range slice . 2 }}
{{- if hasKey $labels . }}
{{- fail (printf "%s: the chart sets the label '%s' itself; remove it" $value .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mldiag.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mldiag.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mldiag.subject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag.serviceAccount" . | quote }}, namespace: {{ .Release.Namespace | quote }}}
{{- end }}

{{/* Image reference. An umbrella chart can set one registry for all its charts: global.imageRegistry. */}}
{{- define "mldiag.image" -}}
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

{{/* Pod security context of the Deployment and of `helm test` (profile "restricted"), with or without fixed ids. */}}
{{- define "mldiag.podSecurity" -}}
{{- $ids := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- $given := .Values.podSecurityContext }}
{{- if not (hasKey .Values "enabled") }}
{{- /* Reused values of an older chart. Helm drops null values, so only a missing newer value identifies them. */}}
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

{{- define "mldiag.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* extraEnv, starting with a line break. */}}
{{- define "mldiag.extraEnv" -}}
{{- include "mldiag.addedEnv" (dict "value" "extraEnv" "added" .Values.extraEnv "own" (include "mldiag.env" .)) }}
{{- end }}

{{/* Variables of a value, after a line break. Duplicate names fail here: the API server would silently keep the last one. */}}
{{- define "mldiag.addedEnv" -}}
{{- $value := .value }}
{{- $own := list }}
{{- range .own | fromYamlArray }}{{ $own = append $own .name }}{{ end }}
{{- $added := list }}
{{- range .added }}
{{- if has .name $own }}
{{- fail (printf "%s: the chart sets '%s' itself; remove it and set the chart's value for it, see values.yaml" $value .name) }}
{{- else if has .name $added }}
{{- fail (printf "%s: '%s' is set twice; remove one of them" $value .name) }}
{{- end }}
{{- $added = append $added .name }}
{{- end }}
{{- with .added }}
{{ toYaml . }}
{{- end }}
{{- end }}
