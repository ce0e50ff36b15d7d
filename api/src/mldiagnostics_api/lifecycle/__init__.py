"""The life of a workload by its own spec and status, one reader for each kind."""

from mldiagnostics_api.lifecycle.decision import MAX_REASON, MAX_TEXT, QUEUE_LABEL, lifecycle
from mldiagnostics_api.lifecycle.fields import MAX_COUNT
from mldiagnostics_api.lifecycle.model import Lifecycle
from mldiagnostics_api.lifecycle.pods import QUEUE_GATE

__all__ = ["MAX_COUNT", "MAX_REASON", "MAX_TEXT", "QUEUE_GATE", "QUEUE_LABEL", "Lifecycle", "lifecycle"]
