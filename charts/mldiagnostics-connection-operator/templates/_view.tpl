{{/* Values of the web view with their defaults: `helm upgrade --reuse-values` from an older chart has none of them. */}}
{{- define "mldiag.view" -}}
{{- $proxy := dict "userHeader" "" "groupsHeader" "" "secretHeader" "X-Mldiag-Proxy-Secret" "secretName" "" "from" list }}
{{- $image := dict "repository" "mldiagnostics-cli" "tag" "" "digest" "" }}
{{- $defaults := dict "enabled" false "url" "" "port" 8425 "mountVolume" false "captures" false "image" $image "proxy" $proxy }}
{{- $_ := set $defaults "serviceAccount" (dict "annotations" dict) }}
{{- $_ := set $defaults "resources" dict }}
{{- $_ := set $defaults "bucketSecretName" "" }}
{{- $_ := set $defaults "extraEnv" list }}
{{- $xprofImage := dict "repository" "mldiagnostics-xprof" "tag" "" "digest" "" }}
{{- $_ := set $defaults "xprof" (dict "enabled" false "image" $xprofImage "cacheGiB" 8 "resources" dict) }}
{{- toYaml (mergeOverwrite $defaults (deepCopy (default dict .Values.view))) }}
{{- end }}

{{- define "mldiag.viewName" -}}
{{- include "mldiag.fullname" . }}-web-view
{{- end }}

{{- define "mldiag.viewSelector" -}}
app.kubernetes.io/name: {{ include "mldiag.name" . }}-web-view
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "mldiag.viewLabels" -}}
{{ include "mldiag.viewSelector" . }}
app.kubernetes.io/part-of: mldiagnostics
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- include "mldiag.commonLabels" . }}
{{- end }}

{{- define "mldiag.viewSubject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag.viewName" . }}, namespace: {{ .Release.Namespace | quote }}}
{{- end }}

{{/* Image of the view: that of the command line, from the registry of the operator's image. */}}
{{- define "mldiag.viewImage" -}}
{{- $view := include "mldiag.view" . | fromYaml }}
{{- include "mldiag.otherImage" (list . $view.image) }}
{{- end }}

{{/* Image of XProf beside the view, from the same registry. */}}
{{- define "mldiag.viewXprofImage" -}}
{{- $view := include "mldiag.view" . | fromYaml }}
{{- include "mldiag.otherImage" (list . $view.xprof.image) }}
{{- end }}

{{/* Permissions of the view in each namespace whose runs it shows. A test exercises every verb. */}}
{{- define "mldiag.viewRules" -}}
{{- $view := include "mldiag.view" . | fromYaml }}
- {apiGroups: [diagon.gke.io], resources: [mlruns], verbs: [list, watch]}
# The automatic captures of a run.
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsschedules], verbs: [list]}
# The hosts of a run.
- {apiGroups: [""], resources: [pods], verbs: [list]}
{{- if and $view.captures $view.proxy.userHeader }}
# Captures for viewers who have these rights themselves.
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections], verbs: [get, create, patch]}
{{- end }}
{{- end }}

{{- define "mldiag.viewEnv" -}}
{{- $view := include "mldiag.view" . | fromYaml }}
{{- $name := include "mldiag.viewName" . }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) }}
{{- with $view.url }}{{ $hosts = append $hosts (index (splitList ":" (urlParse .).host) 0) }}{{ end }}
- {name: MLDIAG_LOG_LEVEL, value: {{ .Values.log.level }}}
- {name: MLDIAG_WATCH_NAMESPACES, value: {{ join "," .Values.watch.namespaces | quote }}}
- {name: MLDIAG_POLICY_FILE, value: /etc/mldiagnostics/policy.json}
- {name: MLDIAG_HTTP_PORT, value: "8081"}
- {name: MLDIAG_VIEW_PORT, value: {{ int $view.port | quote }}}
- {name: MLDIAG_VIEW_HOSTS, value: {{ join "," $hosts | quote }}}
{{- if $view.mountVolume }}
- {name: MLDIAG_VOLUME_ROOT, value: /var/lib/mldiagnostics}
{{- end }}
{{- if $view.xprof.enabled }}
- {name: MLDIAG_VIEW_XPROF_URL, value: "http://127.0.0.1:8791"}
- {name: MLDIAG_VIEW_XPROF_CACHE, value: /var/cache/xprof}
- {name: MLDIAG_VIEW_XPROF_CACHE_GIB, value: {{ int $view.xprof.cacheGiB | quote }}}
{{- end }}
- {name: MLDIAG_VIEW_CAPTURES, value: {{ $view.captures | quote }}}
{{- with $view.proxy }}
{{- if .userHeader }}
- {name: MLDIAG_VIEW_USER_HEADER, value: {{ .userHeader }}}
- {name: MLDIAG_VIEW_GROUPS_HEADER, value: {{ .groupsHeader | quote }}}
- {name: MLDIAG_VIEW_SECRET_HEADER, value: {{ .secretHeader }}}
- {name: MLDIAG_VIEW_SECRET_FILE, value: /etc/mldiagnostics-proxy/secret}
{{- end }}
{{- end }}
{{- include "mldiag.bucketEnv" . }}
{{- end }}
