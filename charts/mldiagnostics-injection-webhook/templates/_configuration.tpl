{{/*
Entries of the MutatingWebhookConfiguration: generated from the table of kinds, completed with the Service. The release's own
namespace is excluded, so that the webhook never waits for itself; `default` is never excluded.
*/}}
{{- define "mldiag-injection.entries" -}}
{{- $entries := .Files.Get "generated/webhooks.yaml" | fromYamlArray }}
{{- $more := default dict .Values.configuration }}
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
{{- include "mldiag-injection.narrow" (list $entry.namespaceSelector $more.namespaceSelector) }}
{{- if $entry.objectSelector }}
{{- include "mldiag-injection.narrow" (list $entry.objectSelector $more.objectSelector) }}
{{- end }}
{{- end }}
{{- toYaml $entries }}
{{- end }}

{{/* Adds the user's selector to that of an entry. Argument: list of the entry's selector and the user's. */}}
{{- define "mldiag-injection.narrow" -}}
{{- $selector := first . }}
{{- $more := default dict (last .) }}
{{- with $more.matchLabels }}
{{- $_ := set $selector "matchLabels" . }}
{{- end }}
{{- with $more.matchExpressions }}
{{- $_ := set $selector "matchExpressions" (concat (default list $selector.matchExpressions) .) }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.configurationAnnotations" -}}
{{- $annotations := deepCopy (default dict (default dict .Values.configuration).annotations) }}
{{- if eq .Values.certificates.mode "cert-manager" }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "mldiag-injection.fullname" .)) }}
{{- end }}
{{- with $annotations }}
{{- toYaml . }}
{{- end }}
{{- end }}
