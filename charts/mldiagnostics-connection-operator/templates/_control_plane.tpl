{{/*
Values of the control plane with their defaults: `helm upgrade --reuse-values` from an older chart has none of them. With
`publish` decided: of several releases in a cluster only one can publish.
*/}}
{{- define "mldiag.controlPlane" -}}
{{- $defaults := dict "enabled" true "port" 8443 "peer" (dict "enabled" false "port" 8080) }}
{{- $_ := set $defaults "certificates" (dict "mode" "self" "provided" (dict "secretName" "")) }}
{{- $_ := set $defaults "files" (dict "enabled" false "port" 8444) }}
{{- $plane := mergeOverwrite $defaults (deepCopy (default dict .Values.controlPlane)) }}
{{- if kindIs "invalid" $plane.publish }}{{ $_ := set $plane "publish" (not .Values.watch.namespaces) }}{{ end }}
{{- $_ := set $plane "publish" (and $plane.enabled $plane.publish) }}
{{- $_ := set $plane.peer "enabled" (and $plane.enabled $plane.peer.enabled) }}
{{- $_ := set $plane.files "enabled" (and $plane.enabled $plane.files.enabled) }}
{{- toYaml $plane }}
{{- end }}

{{- define "mldiag.controlPlaneService" -}}
{{- include "mldiag.fullname" . }}-api
{{- end }}

{{/* Name of the mounted Secret, filled by cert-manager or by the user. Empty: the operator manages its own Secret. */}}
{{- define "mldiag.controlPlaneSecret" -}}
{{- $plane := include "mldiag.controlPlane" . | fromYaml }}
{{- if not $plane.enabled }}
{{- else if eq $plane.certificates.mode "cert-manager" }}
{{- include "mldiag.controlPlaneService" . }}-tls
{{- else if eq $plane.certificates.mode "provided" }}
{{- required "controlPlane.certificates.provided.secretName: is empty; controlPlane.certificates.mode=provided needs it" $plane.certificates.provided.secretName }}
{{- end }}
{{- end }}

{{- define "mldiag.controlPlaneOwnSecret" -}}
{{- include "mldiag.fullname" . }}-certificates
{{- end }}

{{- define "mldiag.refusePorts" -}}
{{- $plane := include "mldiag.controlPlane" . | fromYaml }}
{{- $ports := list "8081" (toString (int $plane.port)) }}
{{- if $plane.peer.enabled }}{{ $ports = append $ports (toString (int $plane.peer.port)) }}{{ end }}
{{- if $plane.files.enabled }}{{ $ports = append $ports (toString (int $plane.files.port)) }}{{ end }}
{{- if and $plane.enabled (ne (len $ports) (len (uniq $ports))) }}
{{- fail (printf "controlPlane.port, controlPlane.peer.port, controlPlane.files.port: two of the ports %s are equal (8081 is that of probes and metrics); set different ports" (join ", " $ports)) }}
{{- end }}
{{- end }}

{{/* Environment of the control plane, starting with a line break. */}}
{{- define "mldiag.controlPlaneEnv" -}}
{{- $plane := include "mldiag.controlPlane" . | fromYaml }}
{{- if $plane.enabled }}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: MLDIAG_CONTROL_PLANE, value: "true"}
- {name: MLDIAG_CONTROL_PLANE_PORT, value: {{ int $plane.port | quote }}}
- {name: MLDIAG_CONTROL_PLANE_SERVICE, value: {{ include "mldiag.controlPlaneService" . }}}
- {name: MLDIAG_CONTROL_PLANE_PUBLISH, value: {{ $plane.publish | quote }}}
{{- if include "mldiag.controlPlaneSecret" . }}
- {name: MLDIAG_CONTROL_PLANE_CERTIFICATE_FOLDER, value: /etc/mldiagnostics-certificate}
{{- else }}
- {name: MLDIAG_CONTROL_PLANE_SECRET, value: {{ include "mldiag.controlPlaneOwnSecret" . }}}
{{- end }}
{{- if $plane.peer.enabled }}
- {name: MLDIAG_PEER_PORT, value: {{ int $plane.peer.port | quote }}}
{{- end }}
{{- if $plane.files.enabled }}
- {name: MLDIAG_RESULTS_PORT, value: {{ int $plane.files.port | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Ports of the Service, by the names that the operator writes into its EndpointSlice. */}}
{{- define "mldiag.controlPlanePorts" -}}
{{- $plane := include "mldiag.controlPlane" . | fromYaml }}
{{- if $plane.enabled }}
- {name: https, port: {{ int $plane.port }}}
{{- if $plane.peer.enabled }}
- {name: http-peer, port: {{ int $plane.peer.port }}}
{{- end }}
{{- if $plane.files.enabled }}
- {name: https-results, port: {{ int $plane.files.port }}}
{{- end }}
{{- end }}
{{- end }}
