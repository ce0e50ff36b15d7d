"""The vocabulary of a run, with the names and values that code written for Google's ML Diagnostics SDK imports."""

from __future__ import annotations

from enum import Enum


class RunPhase(Enum):
    """How far a run is."""

    PHASE_UNSPECIFIED = "RUN_PHASE_UNSPECIFIED"
    PHASE_ACTIVE = "ACTIVE"
    PHASE_COMPLETED = "COMPLETED"
    PHASE_FAILED = "FAILED"


class Framework(Enum):
    """What trains or serves, and so what profiles are taken with."""

    JAX = "JAX"
    PYTORCH = "PYTORCH"
    TENSORFLOW = "TENSORFLOW"
    DETECT = "UNKNOWN"
    """As an argument: whatever the program imports, also later. A run has it only until then."""


class ServingEngine(Enum):
    """What serves a model, if anything does."""

    NONE = "NONE"
    VLLM = "VLLM"


class AcceleratorOrchestrator(Enum):
    """What stands between the program and its accelerators."""

    NONE = "NONE"
    PATHWAYS = "PATHWAYS"


class ApplicationFramework(Enum):
    """The application that the program is built from."""

    NONE = "NONE"
    MAXTEXT = "MAXTEXT"
    AXLEARN = "AXLEARN"
    MAXDIFFUSION = "MAXDIFFUSION"


class RlOrchestrator(Enum):
    """What drives reinforcement learning, if anything does."""

    NONE = "NONE"
    TUNIX = "TUNIX"


class Orchestrator(str, Enum):
    """What started the processes."""

    GKE = "GKE"
    SLURM = "SLURM"
    CUSTOM = "CUSTOM"
    NONE = "NONE"
