{{/* Values of the buckets with their defaults: `helm upgrade --reuse-values` from an older chart has none of them. */}}
{{- define "mldiag.buckets" -}}
{{- toYaml (mergeOverwrite (dict "env" list "ca" "" "ports" (list 443) "secretName" "") (deepCopy (default dict .Values.buckets))) }}
{{- end }}

{{/* Variables of the clients of buckets, after a line break, in a container that mounts the policy. */}}
{{- define "mldiag.bucketEnv" -}}
{{- $buckets := include "mldiag.buckets" . | fromYaml }}
{{- $keys := list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" }}
{{- $keys = concat $keys (list "AZURE_STORAGE_ACCOUNT_KEY" "AZURE_STORAGE_SAS_TOKEN" "AZURE_CLIENT_SECRET") }}
{{- range $buckets.env }}
{{- if and (has .name $keys) (hasKey . "value") }}
{{- fail (printf "buckets.env: '%s' is a key; put it into a Secret, and name that in buckets.secretName" .name) }}
{{- else if regexMatch "^(MLDIAG|POD)_" .name }}
{{- fail (printf "buckets.env: the chart sets '%s' itself; remove it, only clients of buckets read these variables" .name) }}
{{- end }}
{{- end }}
{{- $own := list }}
{{- if $buckets.ca }}
{{- $own = append $own (dict "name" "AWS_CA_BUNDLE" "value" "/etc/mldiagnostics/bucket-ca.crt") }}
{{ toYaml $own }}
{{- end }}
{{- include "mldiag.addedEnv" (dict "value" "buckets.env" "added" $buckets.env "own" (toYaml $own)) }}
{{- end }}

{{/* Static keys of a container: all variables of a Secret. The argument is its name; none without one. */}}
{{- define "mldiag.bucketKeys" -}}
{{- with . -}}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}
