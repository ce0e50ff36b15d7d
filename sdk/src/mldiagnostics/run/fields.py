"""The fields of a run that code written for Google's SDK reads, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """`name` is the run id, as there, and `display_name` what the program called the run."""

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


def run_fields(arguments: RunArguments, whereabouts: ResolvedIdentity, origin: Origin) -> RunFields:
    """Return the fields of a run that begins."""
    return RunFields(
        name=origin.run_id,
        display_name=arguments.name,
        run_group=arguments.run_group,
        gcs_path=arguments.gcs_path,
        location=arguments.region,
        project=arguments.project,
        workload_details=dict(whereabouts.identity.workload) if whereabouts.identity else {},
        workload_targets=[{"hostname": origin.host}],
        orchestrator=_orchestrator(whereabouts),
        on_demand_xprof=arguments.on_demand_xprof,
        log_system_metrics=arguments.log_system_metrics,
        metrics_record_interval_sec=arguments.metrics_record_interval_s,
        metric_only_run=arguments.metric_only_run,
        environment=arguments.environment,
        framework=arguments.framework,
        serving_engine=arguments.serving_engine,
        metrics_exporter_config=arguments.metrics_exporter_config,
        accelerator_orchestrator=arguments.accelerator_orchestrator,
        application_framework=arguments.application_framework,
        rl_orchestrator=arguments.rl_orchestrator,
        control_plane_url=arguments.base_url,
        ml_run_id=origin.run_id,
        cluster_id=arguments.cluster_id,
        workload_id=arguments.run_workload_id,
        namespace=origin.namespace,
    )


def told_process(whereabouts: ResolvedIdentity) -> dict[str, object]:
    """Return what run.json and the records of phases say of where this process runs; unknown parts are left out."""
    place = whereabouts.place
    parts: dict[str, str | int | None] = {
        "node": whereabouts.node or None,
        "podUid": whereabouts.pod_uid or None,
        "slice": place.slice,
        "hostIndex": place.host_index,
    }
    return {key: value for key, value in parts.items() if value is not None}


def told_kinds(fields: RunFields) -> dict[str, str]:
    """Return what run.json says of the sort of run this is."""
    return {
        "orchestrator": fields.orchestrator.value,
        "framework": fields.framework.value,
        "servingEngine": fields.serving_engine.value,
        "acceleratorOrchestrator": fields.accelerator_orchestrator.value,
        "applicationFramework": fields.application_framework.value,
        "rlOrchestrator": fields.rl_orchestrator.value,
        "environment": fields.environment,
    }


def _orchestrator(whereabouts: ResolvedIdentity) -> Orchestrator:
    if whereabouts.identity is None:
        return Orchestrator.NONE
    return {"injected": Orchestrator.GKE, "slurm": Orchestrator.SLURM}.get(
        whereabouts.identity.source, Orchestrator.CUSTOM
    )
