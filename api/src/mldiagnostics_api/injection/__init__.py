"""What the webhook does to a pod: decide whether it is told of its run, and write that as a patch. Pure."""

from mldiagnostics_api.injection.decision import decide
from mldiagnostics_api.injection.decision_key import DecisionKey, likeness_of
from mldiagnostics_api.injection.model import Injection, InjectionReason, NotInjected, OwnersUnknown
from mldiagnostics_api.injection.patch import patch
from mldiagnostics_api.injection.shape import controller_of
from mldiagnostics_api.variables import InjectionSettings

__all__ = [
    "DecisionKey",
    "Injection",
    "InjectionReason",
    "InjectionSettings",
    "NotInjected",
    "OwnersUnknown",
    "controller_of",
    "decide",
    "likeness_of",
    "patch",
]
