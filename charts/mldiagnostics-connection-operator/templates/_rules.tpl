{{/* What the operator does for captures, in each namespace that it serves. Every verb is exercised by a test. */}}
{{- define "mldiag.captureRules" -}}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections], verbs: [get, list, watch, delete]}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections/status], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
# A workload is read when it is named; those between it and its pods are listed.
- {apiGroups: [apps], resources: [deployments], verbs: [get]}
- {apiGroups: [apps], resources: [replicasets, statefulsets], verbs: [get, list]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get]}
- {apiGroups: [ray.io], resources: [rayclusters], verbs: [get, list]}
- {apiGroups: [ray.io], resources: [rayjobs, rayservices], verbs: [get]}
- {apiGroups: [kubeflow.org], resources: [jaxjobs, mpijobs, pytorchjobs], verbs: [get]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get]}
- {apiGroups: [pathways-job.pathways.domain], resources: [pathwaysjobs], verbs: [get]}
{{- end }}

{{- define "mldiag.subject" -}}
- {kind: ServiceAccount, name: {{ include "mldiag.serviceAccount" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}
