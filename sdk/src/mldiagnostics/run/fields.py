"""The public fields of a run, as code written for Google's SDK reads them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.kinds import (
    AcceleratorOrchestrator,
    ApplicationFramework,
    Framework,
    Orchestrator,
    RlOrchestrator,
    RunPhase,
    ServingEngine,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.run.arguments import RunArguments


@dataclass(eq=False, kw_only=True)
class RunFields:
    """Public fields of a run, with the names of Google's SDK.

    Attributes:
        name: Run id, 64 hexadecimal characters.
        display_name: Name that the program gave the run.
        run_group: Group of related runs.
        gcs_path: Value of the argument of this name.
        location: Google Cloud region.
        project: Google Cloud project.
        run_phase: Current phase.
        created_at: Creation time in UTC, ISO 8601.
        workload_details: Description of the workload, empty if unknown.
        workload_targets: Host of this process.
        orchestrator: Orchestrator that started the processes.
        on_demand_xprof: Whether profiles can be captured on demand.
        log_system_metrics: Whether system metrics are recorded.
        metrics_record_interval_sec: Seconds between system metrics.
        metric_only_run: Whether the run takes no profiles.
        environment: `prod`, `staging` or `autopush`.
        framework: Framework of the program; DETECT until it has imported one.
        serving_engine: Serving engine, if any.
        metrics_exporter_config: Value of the argument of this name.
        accelerator_orchestrator: Orchestrator of the accelerators, if any.
        application_framework: Application, if known.
        rl_orchestrator: Driver of reinforcement learning, if any.
        control_plane_url: URL of the control plane to which the process reports, if any.
        ml_run_id: Same as `name`.
        cluster_id: Name of the cluster that the program or the environment gave.
        workload_id: Value of `run_workload_id`.
        namespace: Kubernetes namespace, empty outside a cluster.
    """

    name: str
    display_name: str
    run_group: str = ""
    gcs_path: str | None = None
    location: str | None = None
    project: str | None = None
    run_phase: RunPhase = RunPhase.PHASE_ACTIVE
    created_at: str = field(default_factory=lambda: datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    workload_details: Mapping[str, Any] = field(default_factory=dict)
    workload_targets: list[Mapping[str, str]] = field(default_factory=list)
    orchestrator: Orchestrator = Orchestrator.NONE
    on_demand_xprof: bool = False
    log_system_metrics: bool = True
    metrics_record_interval_sec: float = 10.0
    metric_only_run: bool = False
    environment: str = "prod"
    framework: Framework = Framework.DETECT
    serving_engine: ServingEngine = ServingEngine.NONE
    metrics_exporter_config: Mapping[str, Any] | None = None
    accelerator_orchestrator: AcceleratorOrchestrator = AcceleratorOrchestrator.NONE
    application_framework: ApplicationFramework = ApplicationFramework.NONE
    rl_orchestrator: RlOrchestrator = RlOrchestrator.NONE
    control_plane_url: str | None = None
    ml_run_id: str = ""
    cluster_id: str | None = None
    workload_id: str | None = None
    namespace: str = ""


def run_fields(
    arguments: RunArguments, identity: ResolvedIdentity, origin: Origin, *, control_plane: str | None
) -> RunFields:
    """Return the fields of a new run; arguments of the same names are among them."""
    same = {each.name: getattr(arguments, each.name) for each in fields(RunFields) if hasattr(arguments, each.name)}
    own = {
        "name": origin.run_id,
        "display_name": arguments.name,
        "location": arguments.region,
        "workload_details": dict(identity.identity.workload) if identity.identity else {},
        "workload_targets": [{"hostname": origin.host}],
        "orchestrator": _orchestrator(identity),
        "metrics_record_interval_sec": arguments.metrics_record_interval_s,
        "control_plane_url": control_plane,
        "ml_run_id": origin.run_id,
        "workload_id": arguments.run_workload_id,
        "namespace": origin.namespace,
    }
    return RunFields(**{**same, **own})


def constant_sections(run: RunFields, arguments: RunArguments, identity: ResolvedIdentity) -> dict[str, object]:
    """Return the parts of run.json that do not change while the run lasts."""
    shared = identity.identity
    return {
        "runGroup": run.run_group,
        "tags": list(arguments.tags),
        "notes": arguments.notes,
        "identity": {
            "source": shared.source if shared else "fresh",
            "workload": dict(shared.workload) if shared else {},
        },
        "process": process_section(identity),
        "sinks": list(arguments.sinks),
    }


def process_section(identity: ResolvedIdentity) -> dict[str, object]:
    """Return the section `process` of run.json, without unknown parts."""
    process = identity.process
    parts: dict[str, str | int | None] = {
        "node": identity.node or None,
        "podUid": identity.pod_uid or None,
        "slice": process.slice,
        "hostIndex": process.host_index,
    }
    return {key: value for key, value in parts.items() if value is not None}


def kinds_section(run: RunFields) -> dict[str, str]:
    """Return the section `kinds` of run.json."""
    return {
        "orchestrator": run.orchestrator.value,
        "framework": run.framework.value,
        "servingEngine": run.serving_engine.value,
        "acceleratorOrchestrator": run.accelerator_orchestrator.value,
        "applicationFramework": run.application_framework.value,
        "rlOrchestrator": run.rl_orchestrator.value,
        "environment": run.environment,
    }


def _orchestrator(identity: ResolvedIdentity) -> Orchestrator:
    if identity.identity is None:
        return Orchestrator.NONE
    return {"injected": Orchestrator.GKE, "slurm": Orchestrator.SLURM}.get(
        identity.identity.source, Orchestrator.CUSTOM
    )
