"""Version v1alpha1 of the custom resources: a module per kind, and shared parts."""

from mldiagnostics_api.v1alpha1.connection import (
    CaptureResult,
    ConnectionSpec,
    ConnectionStatus,
    LabelSelector,
    MLDiagnosticsConnection,
    TargetCounts,
    TargetResult,
    TargetSelection,
    TriggerCapture,
    read_connection,
)
from mldiagnostics_api.v1alpha1.shared import LABEL_KEY, NameRef, ObjectMeta, StatusCondition, WorkloadRef

__all__ = [
    "LABEL_KEY",
    "CaptureResult",
    "ConnectionSpec",
    "ConnectionStatus",
    "LabelSelector",
    "MLDiagnosticsConnection",
    "NameRef",
    "ObjectMeta",
    "StatusCondition",
    "TargetCounts",
    "TargetResult",
    "TargetSelection",
    "TriggerCapture",
    "WorkloadRef",
    "read_connection",
]
