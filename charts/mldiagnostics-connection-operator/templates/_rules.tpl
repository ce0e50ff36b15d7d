{{/* Permissions for captures and runs in each namespace that the operator serves. A test exercises every verb. */}}
{{- define "mldiag.captureRules" -}}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections], verbs: [get, list, watch, create, delete]}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsconnections/status], verbs: [patch]}
# Schedules create captures, and delete those that leave their history.
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsschedules], verbs: [list, watch]}
- {apiGroups: [diagon.gke.io], resources: [mldiagnosticsschedules/status], verbs: [patch]}
# The author of a schedule must still have the right to make captures.
- {apiGroups: [authorization.k8s.io], resources: [localsubjectaccessreviews], verbs: [create]}
# A capture may name a run. `patch` sets the finalizer of runs whose files are deleted with them.
- {apiGroups: [diagon.gke.io], resources: [mlruns], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [diagon.gke.io], resources: [mlruns/status], verbs: [update]}
# Events of pods that ended show why.
- {apiGroups: [""], resources: [events], verbs: [create, list]}
# `watch` wakes captures that wait for their pods, and follows labelled pods that are runs.
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
# A label of the namespace may opt workloads in.
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
# Workloads and owners of pods: one object with `get`; `list` if it is missing or there are many owners. Runs follow
# workloads with `watch`.
- {apiGroups: [apps], resources: [replicasets], verbs: [get, list]}
- {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list, watch]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get, list, watch]}
- {apiGroups: [ray.io], resources: [rayclusters, rayjobs, rayservices], verbs: [get, list, watch]}
- {apiGroups: [kubeflow.org], resources: [jaxjobs, mpijobs, pytorchjobs], verbs: [get, list, watch]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list, watch]}
# Kueue's reasons, in namespaces with runs in a queue. Without Kueue the rule has no effect.
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [list, watch]}
- {apiGroups: [pathways-job.pathways.domain], resources: [pathwaysjobs], verbs: [get, list, watch]}
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
