"""What the webhook does to a pod: decide whether it is told of its run, and write that as a patch. Pure."""

from mldiagnostics_api.injection.decision import decide
from mldiagnostics_api.injection.likeness import Likeness, likeness_of
from mldiagnostics_api.injection.model import Injection, NotInjected, Reason, Unknown
from mldiagnostics_api.injection.patch import patch
from mldiagnostics_api.injection.shape import controller_of
from mldiagnostics_api.variables import Settings

__all__ = [
    "Injection",
    "Likeness",
    "NotInjected",
    "Reason",
    "Settings",
    "Unknown",
    "controller_of",
    "decide",
    "likeness_of",
    "patch",
]
