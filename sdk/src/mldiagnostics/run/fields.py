"""The public fields of a run, as code written for Google's SDK reads them."""

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
    """Return the fields of a new run."""
    return RunFields(
        name=origin.run_id,
        display_name=arguments.name,
        run_group=arguments.run_group,
        gcs_path=arguments.gcs_path,
        location=arguments.region,
        project=arguments.project,
        workload_details=dict(identity.identity.workload) if identity.identity else {},
        workload_targets=[{"hostname": origin.host}],
        orchestrator=_orchestrator(identity),
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
        control_plane_url=control_plane,
        ml_run_id=origin.run_id,
        cluster_id=arguments.cluster_id,
        workload_id=arguments.run_workload_id,
        namespace=origin.namespace,
    )


def constant_sections(fields: RunFields, arguments: RunArguments, identity: ResolvedIdentity) -> dict[str, object]:
    """Return the parts of run.json that do not change while the run lasts."""
    shared = identity.identity
    return {
        "runGroup": fields.run_group,
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


def kinds_section(fields: RunFields) -> dict[str, str]:
    """Return the section `kinds` of run.json."""
    return {
        "orchestrator": fields.orchestrator.value,
        "framework": fields.framework.value,
        "servingEngine": fields.serving_engine.value,
        "acceleratorOrchestrator": fields.accelerator_orchestrator.value,
        "applicationFramework": fields.application_framework.value,
        "rlOrchestrator": fields.rl_orchestrator.value,
        "environment": fields.environment,
    }


def _orchestrator(identity: ResolvedIdentity) -> Orchestrator:
    if identity.identity is None:
        return Orchestrator.NONE
    return {"injected": Orchestrator.GKE, "slurm": Orchestrator.SLURM}.get(
        identity.identity.source, Orchestrator.CUSTOM
    )
