"""Properties of all events with one name.

They follow from the name, and the statistics of the first event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.reading.names import host_role, is_loop, operation_phase
from mldiagnostics_diagnosis.reading.xspace import details, statistics

if TYPE_CHECKING:
    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.xspace import Event, Line, Plane


_ALLOCATIONS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_COLLECTOR = "PythonRefManager::CollectGarbage"
"""JAX marks the start and the end of each collection of Python's garbage with an event of this name."""
_PRODUCER, CONSUMER = "ThreadpoolListener::Record", "ThreadpoolListener::StartRegion"


@dataclass(slots=True)
class Kind:
    """Properties of all events with one number."""

    name: str
    role: Role
    phase: Phase = "compute"
    is_operation: bool = False
    is_loop: bool = False
    has_step: bool = False
    has_run: bool = False
    has_correlation: bool = False
    is_allocation: bool = False
    is_collector: bool = False
    is_python: bool = False
    """Whether Python's tracer recorded it: a function, not an annotation."""
    link: str = ""
    flops: float = 0.0
    traffic: float = 0.0
    program: str = ""
    """The program of the first event, with its number."""

    @property
    def is_ignored(self) -> bool:
        """Whether these events say nothing about steps, phases or launches."""
        return self.role == "internal" and not (self.is_operation or self.link or self.has_run)


def kind_of(plane: Plane, line: Line, event: Event, modules: set[str], *, is_host: bool) -> Kind:
    """Return the kind of an event.

    It follows from the name, and the statistics of the first event of this kind.
    """
    name = plane.names.get(event[0], "")
    values = statistics(line, event, plane)
    has_correlation = "correlation_id" in values
    if is_host and ("hlo_op" not in values or has_correlation):
        if name.endswith((_PRODUCER, CONSUMER)):
            return Kind(name, "internal", link=name)
        if name == _COLLECTOR:
            return Kind(name, "internal", is_collector=True)
        if name in _ALLOCATIONS:
            return Kind(name, "annotation", is_allocation=True)
        role: Role = "step" if "step_num" in values else host_role(name)
        if has_correlation and role == "annotation":  # a call of the GPU's driver
            role = "dispatch"
        if role != "operation":
            kind = Kind(name, role, has_correlation=has_correlation, is_python=name.startswith("$"))
            kind.has_step, kind.has_run = "step_num" in values, "run_id" in values
            return kind
    known = details(plane, event[0]) | values
    category = str(known.get("hlo_category", ""))
    kind = Kind(name, "operation", operation_phase(name, category), is_operation=True, is_loop=is_loop(name))
    kind.has_run = "run_id" in values
    kind.flops, kind.traffic = _amount(known.get("flops")), _amount(known.get("bytes_accessed"))
    if module := known.get("hlo_module"):
        kind.program = f"{module}({known['program_id']})" if "program_id" in known else str(module)
        if kind.phase == "collective":
            modules.add(str(module))
    return kind


def _amount(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
