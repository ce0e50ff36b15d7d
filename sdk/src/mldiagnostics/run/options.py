"""The arguments of one `machinelearning_run` call, as the program passed them.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Arguments of any type, not yet checked.

    See `machinelearning_run` for their meaning.

    None stands for an argument that was not passed. `unknown` holds keyword arguments that the function does not have.
    """

    name: Any = None
    run_group: Any = None
    configs: Any = None
    gcs_path: Any = None
    base_url: Any = None
    cluster_id: Any = None
    project: Any = None
    region: Any = None
    metrics_record_interval_sec: Any = None
    on_demand_xprof: Any = None
    log_system_metrics: Any = None
    environment: Any = None
    framework: Any = None
    serving_engine: Any = None
    run_workload_id: Any = None
    metric_only_run: Any = None
    metrics_exporter_config: Any = None
    accelerator_orchestrator: Any = None
    application_framework: Any = None
    rl_orchestrator: Any = None
    storage: Any = None
    sinks: Any = None
    on_full: Any = None
    strict: Any = None
    tags: Any = None
    notes: Any = None
    unknown: Mapping[str, object] = field(default_factory=dict)
