{{/* Reference of another image of the product, from the registry of the operator's image: (list $ IMAGE). */}}
{{- define "mldiag.otherImage" -}}
{{- $root := index . 0 }}
{{- $values := dict "image" (merge (index . 1) (pick $root.Values.image "registry")) "global" $root.Values.global }}
{{- include "mldiag.image" (dict "Values" $values "Chart" $root.Chart) }}
{{- end }}

{{- define "mldiag.resources" -}}
{{- $need := add (int64 .Values.policy.maxTraceBytes) (mul 368 1024 1024) }}
{{- $computed := dict "limits" (dict "memory" (printf "%dMi" (div (mul 5 $need) (mul 4 1024 1024)))) }}
{{- toYaml (mergeOverwrite $computed (deepCopy .Values.resources)) }}
{{- end }}

{{- define "mldiag.volume" -}}
{{- $volume := .Values.volume }}
{{- if or $volume.existingClaim $volume.claim.enabled -}}
persistentVolumeClaim: {claimName: {{ default (include "mldiag.fullname" .) $volume.existingClaim | quote }}}
{{- else -}}
emptyDir: {sizeLimit: {{ $volume.temporarySize | quote }}}
{{- end }}
{{- end }}

{{/* Replicas without a common storage would each have the files of the time when they led. */}}
{{- define "mldiag.replicas" -}}
{{- $volume := .Values.volume }}
{{- $claimed := or $volume.existingClaim (and $volume.claim.enabled (has "ReadWriteMany" $volume.claim.accessModes)) }}
{{- if not (kindIs "invalid" .Values.replicas) }}
{{- int .Values.replicas }}
{{- else }}
{{- ternary 2 1 (or (not (empty $claimed)) (not (hasPrefix "volume://" .Values.policy.defaultStorage))) }}
{{- end }}
{{- end }}

{{/*
If only one node can mount the claim, the old pods must stop before the new ones start: otherwise the new pod waits for the
volume and the old pod waits for the new one. A chart cannot read the access modes of an existing claim; a single replica
suggests ReadWriteOnce.
*/}}
{{- define "mldiag.strategy" -}}
{{- $volume := .Values.volume }}
{{- $existing := and $volume.existingClaim (lt (int (include "mldiag.replicas" .)) 2) }}
{{- $made := and $volume.claim.enabled (not $volume.existingClaim) (not (has "ReadWriteMany" $volume.claim.accessModes)) }}
{{- if .Values.strategy }}
{{- toYaml .Values.strategy }}
{{- else if or $existing $made }}
{{- "type: Recreate" }}
{{- end }}
{{- end }}

{{/* Affinity of other pods with the operator's volume: if only one node can mount it, they run where the operator does. */}}
{{- define "mldiag.volumeAffinity" -}}
{{- $affinity := deepCopy (default dict .Values.affinity) }}
{{- $hasClaim := or .Values.volume.existingClaim .Values.volume.claim.enabled }}
{{- if and $hasClaim (eq (include "mldiag.strategy" .) "type: Recreate") }}
{{- $operator := dict "matchLabels" (include "mldiag.selector" . | fromYaml) }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" $operator }}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $pods := default dict $affinity.podAffinity }}
{{- $_ := set $pods $required (append (default list (get $pods $required)) $term) }}
{{- $_ := set $affinity "podAffinity" $pods }}
{{- end }}
{{- with $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Variables that the operator and `helm test` share. */}}
{{- define "mldiag.storeEnv" -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
- {name: MLDIAG_POLICY_FILE, value: /etc/mldiagnostics/policy.json}
- {name: MLDIAG_VOLUME_ROOT, value: /var/lib/mldiagnostics}
- {name: MLDIAG_LOG_LEVEL, value: {{ .Values.log.level }}}
{{- include "mldiag.bucketEnv" . }}
{{- end }}

{{/* `$$` keeps the kubelet from expanding `$(NAME)` in a value. */}}
{{- define "mldiag.env" -}}
{{ include "mldiag.storeEnv" . }}
- {name: MLDIAG_CLUSTER_NAME, value: {{ .Values.cluster.name | replace "$" "$$" | quote }}}
- {name: MLDIAG_WATCH_NAMESPACES, value: {{ join "," .Values.watch.namespaces | quote }}}
- {name: MLDIAG_LEASE_NAME, value: {{ include "mldiag.fullname" . }}}
- {name: MLDIAG_HTTP_PORT, value: "8081"}
- {name: MLDIAG_SHUTDOWN_GRACE_SECONDS, value: {{ .Values.shutdownGraceSeconds | quote }}}
- name: MLDIAG_MEMORY_LIMIT
  valueFrom: {resourceFieldRef: {containerName: operator, resource: limits.memory}}
- {name: MLDIAG_IGNORE_MANAGED_ADDON, value: {{ .Values.ignoreManagedAddon | quote }}}
{{- if include "mldiag.hasDiagnoses" . }}
- {name: MLDIAG_DIAGNOSIS_JOB_FILE, value: /etc/mldiagnostics/diagnosis-job.json}
{{- end }}
{{- with (include "mldiag.view" . | fromYaml).url }}
- {name: MLDIAG_VIEW_URL, value: {{ . | replace "$" "$$" | quote }}}
{{- end }}
{{- /* `helm upgrade --reuse-values` from a release without runs has no such block. */}}
{{- with .Values.runs }}
{{- if not (kindIs "invalid" .ttlSecondsAfterFinished) }}
- {name: MLDIAG_RUNS_TTL_SECONDS, value: {{ int64 .ttlSecondsAfterFinished | quote }}}
{{- end }}
- {name: MLDIAG_RUNS_KEPT_PER_NAMESPACE, value: {{ int64 .keepPerNamespace | quote }}}
{{- end }}
{{- include "mldiag.controlPlaneEnv" . }}
{{- end }}

{{- define "mldiag.mounts" -}}
- {name: policy, mountPath: /etc/mldiagnostics, readOnly: true}
- {name: profiles, mountPath: /var/lib/mldiagnostics}
- {name: tmp, mountPath: /tmp}
{{- if include "mldiag.controlPlaneSecret" . }}
- {name: certificate, mountPath: /etc/mldiagnostics-certificate, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mldiag.volumes" -}}
- name: policy
  configMap: {name: {{ include "mldiag.fullname" . }}-policy}
- name: profiles
  {{- include "mldiag.volume" . | nindent 2 }}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- with include "mldiag.controlPlaneSecret" . }}
- name: certificate
  # Without the certificate, captures work.
  secret: {secretName: {{ . | quote }}, optional: true}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
