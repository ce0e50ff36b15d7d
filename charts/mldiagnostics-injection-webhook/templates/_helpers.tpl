{{/* Depends on the release only, so that users can find and delete the configuration by hand. */}}
{{- define "mldiag-injection.configurationName" -}}
{{- .Release.Name }}-mutating-webhook-config
{{- end }}

{{/* Name of the mounted Secret, filled by cert-manager or by the user. Empty: the webhook manages its own Secret. */}}
{{- define "mldiag-injection.mountedSecret" -}}
{{- if eq .Values.certificates.mode "cert-manager" }}
{{- include "mldiag-injection.fullname" . }}-tls
{{- else if eq .Values.certificates.mode "provided" }}
{{- required "certificates.provided.secretName: is empty; certificates.mode=provided needs it" .Values.certificates.provided.secretName }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.ownSecret" -}}
{{- include "mldiag-injection.fullname" . }}-certificates
{{- end }}

{{- define "mldiag-injection.httpPort" -}}
{{- default 8081 .Values.httpPort }}
{{- end }}

{{- define "mldiag-injection.refusePorts" -}}
{{- $ports := dict "port" (int .Values.port) "httpPort" (int (include "mldiag-injection.httpPort" .)) }}
{{- if eq $ports.port $ports.httpPort }}
{{- fail (printf "port: %d is also httpPort; set two different ports" $ports.port) }}
{{- end }}
{{- range $name, $number := $ports }}
{{- if and $.Values.hostNetwork (eq $number 10250) }}
{{- fail (printf "%s: the kubelet uses 10250 on the host network; set another port, such as 8443" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A pod stops after its replacement is ready; on the host network before, because two pods cannot share a node's ports. */}}
{{- define "mldiag-injection.strategy" -}}
{{- if .Values.strategy }}
{{- toYaml .Values.strategy }}
{{- else if .Values.hostNetwork -}}
type: RollingUpdate
rollingUpdate: {maxUnavailable: 1, maxSurge: 0}
{{- else -}}
type: RollingUpdate
rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
{{- end }}
{{- end }}

{{/* Pods on the host network resolve cluster names only with ClusterFirstWithHostNet. */}}
{{- define "mldiag-injection.dnsPolicy" -}}
{{- default (ternary "ClusterFirstWithHostNet" "" (default false .Values.hostNetwork)) .Values.dnsPolicy }}
{{- end }}

{{/* `$$` keeps the kubelet from expanding `$(NAME)` in a value. */}}
{{- define "mldiag-injection.env" -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: MLDIAG_CLUSTER_NAME, value: {{ .Values.cluster.name | replace "$" "$$" | quote }}}
- {name: MLDIAG_STORAGE, value: {{ .Values.storage | replace "$" "$$" | quote }}}
- {name: MLDIAG_SINKS, value: {{ join "," .Values.sinks | replace "$" "$$" | quote }}}
- {name: MLDIAG_VIEW_URL, value: {{ .Values.viewUrl | replace "$" "$$" | quote }}}
- {name: MLDIAG_PROFILER_PORT, value: {{ .Values.profilerPort | quote }}}
- {name: MLDIAG_CONTROL_PLANE_URL, value: {{ .Values.controlPlane.url | replace "$" "$$" | quote }}}
- {name: MLDIAG_CONTROL_PLANE_CA, value: {{ .Values.controlPlane.ca | quote }}}
- {name: MLDIAG_PORT, value: {{ .Values.port | quote }}}
- {name: MLDIAG_HTTP_PORT, value: {{ include "mldiag-injection.httpPort" . | quote }}}
{{- if include "mldiag-injection.mountedSecret" . }}
- {name: MLDIAG_CERTIFICATE_FOLDER, value: /etc/mldiagnostics/certificate}
{{- else }}
- {name: MLDIAG_SERVICE_NAME, value: {{ include "mldiag-injection.fullname" . }}}
- {name: MLDIAG_CONFIGURATION_NAME, value: {{ include "mldiag-injection.configurationName" . }}}
- {name: MLDIAG_CERTIFICATE_SECRET, value: {{ include "mldiag-injection.ownSecret" . }}}
{{- end }}
- {name: MLDIAG_LOG_LEVEL, value: {{ .Values.log.level }}}
{{- end }}

{{- define "mldiag-injection.mounts" -}}
{{- if include "mldiag-injection.mountedSecret" . }}
- {name: certificate, mountPath: /etc/mldiagnostics/certificate, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mldiag-injection.volumes" -}}
{{- with include "mldiag-injection.mountedSecret" . }}
- name: certificate
  secret:
    secretName: {{ . | quote }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Annotations of the objects that the test's pod needs: created before the pod, deleted after it. */}}
{{- define "mldiag-injection.testAnnotations" -}}
helm.sh/hook: test
helm.sh/hook-weight: "-1"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
