{{/* Values of the diagnoses with their defaults: `helm upgrade --reuse-values` from an older chart has none of them. */}}
{{- define "mldiag.diagnosis" -}}
{{- $image := dict "repository" "" "tag" "" "digest" "" }}
{{- $defaults := dict "enabled" true "buckets" false "image" $image "deadlineSeconds" 900 "ttlSecondsAfterFinished" 600 }}
{{- $_ := set $defaults "serviceAccount" (dict "annotations" dict) }}
{{- $_ := set $defaults "bucketSecretName" "" }}
{{- $limits := dict "cpu" "2" "memory" "2Gi" "ephemeral-storage" "1Gi" }}
{{- $_ := set $defaults "resources" (dict "requests" (dict "cpu" "100m" "memory" "256Mi") "limits" $limits) }}
{{- toYaml (mergeOverwrite $defaults (deepCopy (default dict .Values.diagnosis))) }}
{{- end }}

{{/* Not empty if Jobs can read traces: on a claim, or in buckets. The temporary volume belongs to the operator's pod. */}}
{{- define "mldiag.hasDiagnoses" -}}
{{- $diagnosis := include "mldiag.diagnosis" . | fromYaml }}
{{- if and $diagnosis.enabled (or .Values.volume.existingClaim .Values.volume.claim.enabled $diagnosis.buckets) }}true{{ end }}
{{- end }}

{{- define "mldiag.diagnosisName" -}}
{{- include "mldiag.fullname" . }}-diagnosis
{{- end }}

{{- define "mldiag.diagnosisSelector" -}}
app.kubernetes.io/name: {{ include "mldiag.name" . }}-diagnosis
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Image of the Jobs: the operator's, or another one from its registry. */}}
{{- define "mldiag.diagnosisImage" -}}
{{- $diagnosis := include "mldiag.diagnosis" . | fromYaml }}
{{- include "mldiag.otherImage" (list . (ternary $diagnosis.image .Values.image (not (empty $diagnosis.image.repository)))) }}
{{- end }}

{{/*
Labels and spec of a Job as JSON. The operator adds the name, the arguments, and of the volume the directory of one session.
A tenant wrote the traces, so the reader may be theirs: it has no token, no capability, no other network than buckets.
*/}}
{{- define "mldiag.diagnosisJob" -}}
{{- $diagnosis := include "mldiag.diagnosis" . | fromYaml }}
{{- $hasClaim := or .Values.volume.existingClaim .Values.volume.claim.enabled }}
{{- $labels := merge (include "mldiag.diagnosisSelector" . | fromYaml) (include "mldiag.commonLabels" . | fromYaml) }}
{{- $_ := set $labels "app.kubernetes.io/part-of" "mldiagnostics" }}
{{- $tmp := dict "name" "tmp" "mountPath" "/tmp" }}
{{- $container := dict "name" "diagnosis" "image" (include "mldiag.diagnosisImage" .) "imagePullPolicy" .Values.image.pullPolicy }}
{{- $_ := set $container "command" (list "python" "-m" "mldiagnostics_diagnosis") }}
{{- $_ := set $container "securityContext" (include "mldiag.containerSecurity" . | fromYaml) }}
{{- $_ := set $container "resources" $diagnosis.resources }}
{{- $_ := set $container "terminationMessagePolicy" "FallbackToLogsOnError" }}
{{- $buckets := include "mldiag.buckets" . | fromYaml }}
{{- $mounts := list $tmp }}
{{- $memory := dict "resourceFieldRef" (dict "containerName" "diagnosis" "resource" "limits.memory") }}
{{- $cpu := dict "resourceFieldRef" (dict "containerName" "diagnosis" "resource" "limits.cpu") }}
{{- $readers := list (dict "name" "MLDIAG_MEMORY_LIMIT" "valueFrom" $memory) (dict "name" "MLDIAG_CPU_LIMIT" "valueFrom" $cpu) }}
{{- $volumes := list (dict "name" "tmp" "emptyDir" (dict "sizeLimit" "1Gi")) }}
{{- if $diagnosis.buckets }}
{{- $readers = concat $readers (default list (include "mldiag.bucketEnv" . | fromYamlArray)) }}
{{- if $buckets.ca }}
{{- $items := list (dict "key" "bucket-ca.crt" "path" "bucket-ca.crt") }}
{{- $policy := dict "name" (printf "%s-policy" (include "mldiag.fullname" .)) "items" $items }}
{{- $volumes = append $volumes (dict "name" "bucket-ca" "configMap" $policy) }}
{{- $mounts = append $mounts (dict "name" "bucket-ca" "mountPath" "/etc/mldiagnostics" "readOnly" true) }}
{{- end }}
{{- with $diagnosis.bucketSecretName }}
{{- $_ := set $container "envFrom" (list (dict "secretRef" (dict "name" .))) }}
{{- end }}
{{- end }}
{{- $_ := set $container "env" $readers }}
{{- $_ := set $container "volumeMounts" $mounts }}
{{- if $hasClaim }}
{{- $volumes = append $volumes (merge (dict "name" "profiles") (include "mldiag.volume" . | fromYaml)) }}
{{- end }}
{{- $pod := dict "restartPolicy" "Never" "automountServiceAccountToken" false "enableServiceLinks" false }}
{{- $_ := set $pod "serviceAccountName" (include "mldiag.diagnosisName" .) }}
{{- $_ := set $pod "securityContext" (include "mldiag.podSecurity" . | fromYaml) }}
{{- $_ := set $pod "containers" (list $container) }}
{{- $_ := set $pod "volumes" $volumes }}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" }}
{{- with get $.Values $key }}{{ $_ := set $pod $key . }}{{ end }}
{{- end }}
{{- with include "mldiag.volumeAffinity" . | fromYaml }}{{ $_ := set $pod "affinity" . }}{{ end }}
{{- $spec := dict "backoffLimit" 0 "activeDeadlineSeconds" (int $diagnosis.deadlineSeconds) }}
{{- $_ := set $spec "ttlSecondsAfterFinished" (int $diagnosis.ttlSecondsAfterFinished) }}
{{- $_ := set $spec "template" (dict "spec" $pod) }}
{{- toPrettyJson (dict "labels" $labels "spec" $spec "readsBuckets" $diagnosis.buckets) }}
{{- end }}
