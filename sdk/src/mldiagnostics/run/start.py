"""`machinelearning_run`, the one call by which a program starts a run."""

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
    tags: Sequence[str] | str = (),
    notes: str = "",
    **unknown: object,
) -> MLRun:
    """Start a run, or join it as one more of its processes.

    Every process of a job calls this and gets the same run id, derived from values that the processes share
    (`mldiagnostics.identity.resolve`). A run that this process is already in is closed first. The call does not wait
    for a network or a disk and imports no framework.

    An invalid argument is reported once on the logger `mldiagnostics` and replaced by its default; a run that cannot
    be recorded is returned all the same, and all its methods work. Only `strict=True` raises.

    Args:
        name: Name of the run, required; people see it beside the run id.
        run_group: Group of related runs, for example an experiment.
        configs: Configuration to record, at most 64 KiB as JSON. Secrets are replaced.
        gcs_path: Root for the files of all runs under the name of Google's SDK; `storage` wins.
        base_url: URL of the control plane to which the process reports, `https://host:port`. It needs the token of a
            service account, see MLDIAG_CONTROL_PLANE_TOKEN_FILE. Default: MLDIAG_CONTROL_PLANE_URL, else none.
        cluster_id: Name of the cluster in the run id of a Slurm job, in place of SLURM_CLUSTER_NAME, and of a pod whose
            injected metadata has none. Default: DIAGON_CLUSTER_ID.
        project: Google Cloud project for sinks that need one. Default: looked up when a sink needs it.
        region: Google Cloud region or zone. Default: looked up when a sink needs it.
        metrics_record_interval_sec: Seconds between system metrics; 0 or less turns them off.
        on_demand_xprof: Start the profiler server, so that profiles can be captured while the run lasts.
        log_system_metrics: Record CPU, memory and accelerator metrics of each host.
        environment: `prod`, `staging` or `autopush`; recorded only.
        framework: Framework to profile, as a member or its name. Default: detected from the imported modules, JAX
            before PyTorch before TensorFlow, but one with initialised devices before all others.
        serving_engine: Serving engine, recorded only.
        run_workload_id: Id that all processes of the run share, where no launcher provides one.
        metric_only_run: Take no profiles.
        metrics_exporter_config: Sinks in the form of Google's SDK: keys `mode` and `userConfig`, values
            `cloud_logging` and `otel`. `sinks` wins.
        accelerator_orchestrator: Orchestrator between program and accelerators, recorded only.
        application_framework: Application that the program is built from, recorded only.
        rl_orchestrator: Driver of reinforcement learning, recorded only.
        storage: Root below which each run has a directory: a path, `file:///…`, `gs://bucket/prefix`, `s3://…` or `az://…`.
            Default: `gcs_path`, else MLDIAG_STORAGE, else ./mldiagnostics.
        sinks: URLs of sinks for records, as a list or separated by commas. Default: MLDIAG_SINKS, else `jsonl:`, which
            writes to the run's directory.
        on_full: `drop` counts and drops records while the buffer is full; `wait` lets the recording thread wait for
            room, for scripts that record faster than a disk writes. Default: MLDIAG_ON_FULL, else `drop`.
        strict: Raise for invalid arguments, before anything has started.
        tags: Words to find the run by, as a list or separated by commas: at most 32, each of 64 characters.
            `mldiag runs edit` changes them later.
        notes: Remarks about the run for people, at most 2000 characters. `mldiag runs edit` changes them later.
        **unknown: Other keyword arguments are reported and ignored.

    Returns:
        The run; as a context manager it closes itself.

    Raises:
        MLRunConfigurationError: An argument is invalid, with `strict=True`.
        MissingExtraError: A needed package is not installed, with `strict=True`.

    Example:
        >>> from mldiagnostics import machinelearning_run, metrics
        >>> with machinelearning_run("pretrain", storage="gs://bucket/runs") as run:  # doctest: +SKIP
        ...     for step in range(1000):
        ...         run.step(step)
        ...         metrics.record("loss", train_step(), step=step)
    """
    return _start(locals(), time.time())


def _start(options: Mapping[str, Any], requested_at: float) -> MLRun:
    """Start a run; without `strict`, return one without records if that fails."""
    from mldiagnostics.run.startup import start_run  # noqa: PLC0415 - with the first run, not at import
    from mldiagnostics.run.unrecorded import unrecorded_run  # noqa: PLC0415 - the same

    try:
        return start_run(options, requested_at)
    except MLDiagnosticsError as error:
        if options["strict"] is True:
            raise
        warn_once("start", f"this run is not recorded: {error}")
    except (OSError, RuntimeError, MemoryError) as error:
        warn_once("start", f"this run is not recorded: the system lacks a resource that it needs: {error!r}")
    except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the training
        warn_once("start", f"this run is not recorded: a fault in mldiagnostics, please report it: {error!r}")
    return unrecorded_run(str(options["name"]))
