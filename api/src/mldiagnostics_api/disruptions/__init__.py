"""The cause of a disruption, from the cluster's objects; never a guess."""

from mldiagnostics_api.disruptions.causes import CAUSES, DisruptionCause, goodput_name
from mldiagnostics_api.disruptions.decision import DisruptionVerdict, decide
from mldiagnostics_api.disruptions.evidence import (
    CREATION_FAILURES,
    CreationFailure,
    Evidence,
    event_evidence,
    node_evidence,
    workload_evidence,
)
from mldiagnostics_api.disruptions.pod_evidence import pod_evidence

__all__ = [
    "CAUSES",
    "CREATION_FAILURES",
    "CreationFailure",
    "DisruptionCause",
    "DisruptionVerdict",
    "Evidence",
    "decide",
    "event_evidence",
    "goodput_name",
    "node_evidence",
    "pod_evidence",
    "workload_evidence",
]
