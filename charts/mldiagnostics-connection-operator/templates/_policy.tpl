{{/*
Policy document of the operator (mldiagnostics_api.captures.policy): the value `policy` without keys that are null, because some
versions of Helm remove these from the values of a chart with a parent.
*/}}
{{- define "mldiag.policy" -}}
{{- $policy := .Values.policy }}
{{- range $key, $value := .Values.policy }}
{{- if kindIs "invalid" $value }}{{ $policy = omit $policy $key }}{{ end }}
{{- end }}
{{- toPrettyJson $policy }}
{{- end }}

{{/* allowedPorts as ascending pairs in JSON: "9012,9999-10014" -> [[9012,9012],[9999,10014]] */}}
{{- define "mldiag.spans" -}}
{{- $sorted := list }}
{{- range splitList "," (toString .Values.policy.allowedPorts) }}
{{- $ends := splitList "-" (trim .) }}
{{- if or (lt (int (first $ends)) 1) (lt (int (last $ends)) (int (first $ends))) (gt (int (last $ends)) 65535) }}
{{- fail (printf "policy.allowedPorts: '%s' is not a port from 1 to 65535 or a range with the lower port first; write 9012 or 9999-10014" (trim .)) }}
{{- end }}
{{- $sorted = append $sorted (printf "%05d-%05d" (int (first $ends)) (int (last $ends))) }}
{{- end }}
{{- $spans := list }}
{{- range sortAlpha $sorted }}
{{- $ends := splitList "-" . }}
{{- $spans = append $spans (list (int (regexReplaceAll "^0+" (first $ends) "")) (int (regexReplaceAll "^0+" (last $ends) ""))) }}
{{- end }}
{{- toJson $spans }}
{{- end }}

{{/* Profiler ports as NetworkPolicyPorts. Short ranges are written port by port, for networks without endPort. */}}
{{- define "mldiag.profilerPorts" -}}
{{- $ports := list }}
{{- range include "mldiag.spans" . | fromJsonArray }}
{{- $low := int (first .) }}
{{- $high := int (last .) }}
{{- if gt (sub $high $low) 31 }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" $low "endPort" $high) }}
{{- else }}
{{- range untilStep $low (int (add1 $high)) 1 }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml (uniq $ports) }}
{{- end }}

{{/* All ports except the profiler ports, as NetworkPolicyPorts. */}}
{{- define "mldiag.otherPorts" -}}
{{- $next := 1 }}
{{- $ports := list }}
{{- range include "mldiag.spans" . | fromJsonArray }}
{{- $low := int (first .) }}
{{- if gt $low $next }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" $next "endPort" (sub $low 1)) }}
{{- end }}
{{- $next = max $next (add1 (int (last .))) | int }}
{{- end }}
{{- if le $next 65535 }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" $next "endPort" 65535) }}
{{- end }}
{{- range list "UDP" "SCTP" }}
{{- $ports = append $ports (dict "protocol" . "port" 1 "endPort" 65535) }}
{{- end }}
{{- toYaml $ports }}
{{- end }}

{{/*
allowedStorage for CEL. Every prefix ends with "/", so that startsWith compares whole segments. "s3://" allows every bucket of S3.
CEL replaces {namespace} by the namespace that must allow the location.
*/}}
{{- define "mldiag.prefixes" -}}
{{- $allowed := dict }}
{{- if not .Values.policy.strictTenancy }}{{ $_ := set $allowed "*" (list "gs://" "s3://" "az://" "abfss://") }}{{ end }}
{{- range $namespace, $prefixes := .Values.policy.allowedStorage }}
{{- $closed := get $allowed $namespace | default list }}
{{- range $prefixes }}
{{- $closed = append $closed (printf "%s/" (trimPrefix "pod://" . | trimSuffix "/")) }}
{{- end }}
{{- if $closed }}{{ $_ := set $allowed $namespace $closed }}{{ end }}
{{- end }}
{{- toJson $allowed }}
{{- end }}
