{{/* What the operator does for captures, in each namespace that it serves. Every verb is exercised by a test. */}}
{{- define "mldiag.captureRules" -}}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections], verbs: [get, list, watch, delete]}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections/status], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
# Its labels may opt workloads in.
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
# What is named or owns a pod is read; where it is missing, or owners are many, the kind is listed.
- {apiGroups: [apps], resources: [deployments, replicasets, statefulsets], verbs: [get, list]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get, list]}
- {apiGroups: [ray.io], resources: [rayclusters, rayjobs, rayservices], verbs: [get, list]}
- {apiGroups: [kubeflow.org], resources: [jaxjobs, mpijobs, pytorchjobs], verbs: [get, list]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list]}
- {apiGroups: [pathways-job.pathways.domain], resources: [pathwaysjobs], verbs: [get, list]}
{{- end }}

{{- define "mldiag.subject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag.serviceAccount" . }}, namespace: {{ .Release.Namespace | quote }}}
{{- end }}
