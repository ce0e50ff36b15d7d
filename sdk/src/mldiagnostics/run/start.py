"""How a program begins a run: the one call, which raises nothing into it unless it asks for that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from mldiagnostics.configs.kinds import (
    AcceleratorOrchestrator,
    ApplicationFramework,
    Framework,
    RlOrchestrator,
    ServingEngine,
)
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import MLDiagnosticsError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from mldiagnostics.run.mlrun import MLRun


def machinelearning_run(  # noqa: PLR0917 - the order of parameters is that of Google's SDK
    name: str = "",
    run_group: str = "",
    configs: Mapping[str, Any] | None = None,
    gcs_path: str | None = None,
    base_url: str | None = None,
    cluster_id: str | None = None,
    project: str | None = None,
    region: str | None = None,
    metrics_record_interval_sec: float = 10.0,
    on_demand_xprof: bool = False,
    log_system_metrics: bool = True,
    environment: str = "prod",
    framework: Framework | str = Framework.DETECT,
    serving_engine: ServingEngine | str = ServingEngine.NONE,
    run_workload_id: str | None = None,
    metric_only_run: bool = False,
    metrics_exporter_config: Mapping[str, Any] | None = None,
    accelerator_orchestrator: AcceleratorOrchestrator | str = AcceleratorOrchestrator.NONE,
    application_framework: ApplicationFramework | str = ApplicationFramework.NONE,
    rl_orchestrator: RlOrchestrator | str = RlOrchestrator.NONE,
    *,
    storage: str | os.PathLike[str] | None = None,
    sinks: Sequence[str] | str | None = None,
    on_full: Literal["drop", "wait"] | None = None,
    strict: bool = False,
    **unknown: object,
) -> MLRun:
    """Begin a run, or join it as one more process; a run that this process is in already is closed first.

    All processes of a job call it, and find one id by what they share (`mldiagnostics.identity.resolve`). Nothing waits
    for a network or a disk here, and no framework is imported.

    `framework` is the one that the program has imported or imports later (JAX before PyTorch before TensorFlow, but
    one whose devices are initialised before all others); name it if that is not the one to profile.
    `storage` (else `gcs_path`, else MLDIAG_STORAGE, else ./mldiagnostics) is the root below which each run has a
    directory. `sinks` are URLs of places for records, by default `jsonl:` in that directory. `region` may be a zone.
    `on_full` (else MLDIAG_ON_FULL, else "drop") says what happens to a record when the buffer is full: it is dropped
    and counted, or with "wait" its thread waits for room, for scripts that record faster than a disk writes.
    `metrics_record_interval_sec` is the pause between system metrics, in seconds; 0 or less turns them off, as does
    `log_system_metrics=False`.

    `base_url` and `cluster_id` have no effect yet, which one warning each says.

    What cannot be meant is reported once on the logger `mldiagnostics` and replaced by its default. Only with `strict`
    it raises, before anything has begun: `MLRunConfigurationError`, or `MissingExtraError` where a package is missing.
    """
    said, asked = dict(locals()), time.time()
    from mldiagnostics.run.startup import start_run, unrecorded  # noqa: PLC0415 - with the first run, not at import

    try:
        return start_run(said, asked)
    except MLDiagnosticsError as error:
        if strict is True:
            raise
        warn_once("start", f"this run is not recorded: {error}")
    except (OSError, RuntimeError, MemoryError) as error:
        warn_once("start", f"this run is not recorded, since the system does not give what that needs: {error!r}")
    except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the training
        warn_once("start", f"this run is not recorded, by a fault in mldiagnostics, please report it: {error!r}")
    return unrecorded(str(name))
