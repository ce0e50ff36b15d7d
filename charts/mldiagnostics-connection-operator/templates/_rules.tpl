{{/* Permissions for captures in each namespace that the operator serves. A test exercises every verb. */}}
{{- define "mldiag.captureRules" -}}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections], verbs: [get, list, watch, delete]}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections/status], verbs: [patch]}
# A capture may name a run.
- {apiGroups: [diagon.gke.io], resources: [mlruns], verbs: [get]}
- {apiGroups: [""], resources: [events], verbs: [create]}
# `watch` wakes captures that wait for their pods.
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
# A label of the namespace may opt workloads in.
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
# Workloads and owners of pods: one object with `get`; `list` if it is missing or there are many owners.
- {apiGroups: [apps], resources: [deployments, replicasets, statefulsets], verbs: [get, list]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get, list]}
- {apiGroups: [ray.io], resources: [rayclusters, rayjobs, rayservices], verbs: [get, list]}
- {apiGroups: [kubeflow.org], resources: [jaxjobs, mpijobs, pytorchjobs], verbs: [get, list]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list]}
- {apiGroups: [pathways-job.pathways.domain], resources: [pathwaysjobs], verbs: [get, list]}
{{- end }}

{{/* Permission to authenticate clients of the control plane; cluster-wide, because a TokenReview has no namespace. */}}
{{- define "mldiag.reporterRules" -}}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
{{- end }}

{{/* Permissions for the control plane in the namespace of the release. */}}
{{- define "mldiag.controlPlaneRules" -}}
{{- $service := include "mldiag.controlPlaneService" . -}}
# The leader's address, which the Service owns. RBAC cannot restrict `create` by name.
- {apiGroups: [""], resources: [services], resourceNames: [{{ $service }}], verbs: [get]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [create]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], resourceNames: [{{ $service }}-ipv4, {{ $service }}-ipv6], verbs: [get, update]}
{{- if not (include "mldiag.controlPlaneSecret" .) }}
- {apiGroups: [""], resources: [secrets], resourceNames: [{{ include "mldiag.controlPlaneOwnSecret" . }}], verbs: [get, create, patch]}
{{- end }}
{{- end }}
