"""The cause of a disruption, from the cluster's objects; never a guess."""

from mldiagnostics_api.disruptions.causes import CAUSES, DisruptionCause, goodput_cause
from mldiagnostics_api.disruptions.decision import DisruptionVerdict, decide
from mldiagnostics_api.disruptions.evidence import Evidence, event_evidence, node_evidence, workload_evidence
from mldiagnostics_api.disruptions.pod_evidence import pod_evidence

__all__ = [
    "CAUSES",
    "DisruptionCause",
    "DisruptionVerdict",
    "Evidence",
    "decide",
    "event_evidence",
    "goodput_cause",
    "node_evidence",
    "pod_evidence",
    "workload_evidence",
]
