"""Enumerations of a run, with the names and values of Google's ML Diagnostics SDK."""

from __future__ import annotations

from enum import Enum


class RunPhase(Enum):
    """Phase of a run."""

    PHASE_UNSPECIFIED = "RUN_PHASE_UNSPECIFIED"
    PHASE_ACTIVE = "ACTIVE"
    PHASE_COMPLETED = "COMPLETED"
    PHASE_FAILED = "FAILED"


class Framework(Enum):
    """Framework of a program, which takes its profiles."""

    JAX = "JAX"
    PYTORCH = "PYTORCH"
    TENSORFLOW = "TENSORFLOW"
    DETECT = "UNKNOWN"
    """The framework that the program imports; a run has this value only until then."""


class ServingEngine(Enum):
    """Serving engine, if any."""

    NONE = "NONE"
    VLLM = "VLLM"


class AcceleratorOrchestrator(Enum):
    """Orchestrator between a program and its accelerators, if any."""

    NONE = "NONE"
    PATHWAYS = "PATHWAYS"


class ApplicationFramework(Enum):
    """Application that the program is built from, if known."""

    NONE = "NONE"
    MAXTEXT = "MAXTEXT"
    AXLEARN = "AXLEARN"
    MAXDIFFUSION = "MAXDIFFUSION"


class RlOrchestrator(Enum):
    """Driver of reinforcement learning, if any."""

    NONE = "NONE"
    TUNIX = "TUNIX"


class Orchestrator(str, Enum):
    """Orchestrator that started the processes."""

    GKE = "GKE"
    SLURM = "SLURM"
    CUSTOM = "CUSTOM"
    NONE = "NONE"
