"""The injection of a run's identity into a pod: a decision and its JSON patch."""

from mldiagnostics_api.injection.decision import MAX_POD_BYTES, decide
from mldiagnostics_api.injection.decision_key import DecisionKey, decision_key
from mldiagnostics_api.injection.model import Injection, InjectionReason, NotInjected, OwnersUnknown
from mldiagnostics_api.injection.patch import patch
from mldiagnostics_api.injection.shape import controller_of
from mldiagnostics_api.injection.trial import trial_pod, trial_result
from mldiagnostics_api.workloads.variables import InjectionSettings

__all__ = [
    "MAX_POD_BYTES",
    "DecisionKey",
    "Injection",
    "InjectionReason",
    "InjectionSettings",
    "NotInjected",
    "OwnersUnknown",
    "controller_of",
    "decide",
    "decision_key",
    "patch",
    "trial_pod",
    "trial_result",
]
