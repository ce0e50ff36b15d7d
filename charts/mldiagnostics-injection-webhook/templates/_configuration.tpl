{{/*
What the API server asks the webhook, all of it but metadata.annotations: entries generated from the table of kinds, with the
Service that answers. The release's own namespace is left out, so that the webhook never waits for itself; `default` never is.
*/}}
{{- define "mldiag-injection.entries" -}}
{{- $entries := .Files.Get "generated/webhooks.yaml" | fromYamlArray }}
{{- $own := list }}
{{- if ne .Release.Namespace "default" }}{{ $own = list .Release.Namespace }}{{ end }}
{{- range $entry := $entries }}
{{- $service := $entry.clientConfig.service }}
{{- $_ := merge $service (dict "name" (include "mldiag-injection.fullname" $) "namespace" $.Release.Namespace "port" 443) }}
{{- $bundle := $.Values.certificates.provided.caBundle }}
{{- if and $bundle (eq $.Values.certificates.mode "provided") }}
{{- $_ := set $entry.clientConfig "caBundle" (b64enc $bundle) }}
{{- end }}
{{- range $expression := $entry.namespaceSelector.matchExpressions }}
{{- if eq $expression.key "kubernetes.io/metadata.name" }}
{{- $_ := set $expression "values" (concat $expression.values $own | uniq) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $entries }}
{{- end }}

{{- define "mldiag-injection.configurationAnnotations" -}}
{{- if eq .Values.certificates.mode "cert-manager" }}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "mldiag-injection.fullname" . }}
{{- end }}
{{- end }}
