"""The environment variables that the SDK reads: one table, from which the reference is written.

python -m mldiagnostics.run.settings    print docs/reference/sdk-env.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from collections.abc import Mapping

OnFull: TypeAlias = Literal["drop", "wait"]
"""What happens to a record when the buffer is full."""

ON_FULL: Mapping[str, OnFull] = {"drop": "drop", "wait": "wait"}
DEFAULT_HEARTBEAT_S = 10.0
_SHORTEST_HEARTBEAT_S, _LONGEST_HEARTBEAT_S = 0.1, 3600.0


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable (or several of one meaning), who usually sets it, and what it means."""

    name: str
    set_by: str
    meaning: str


VARIABLES = (
    Variable("MLDIAG_STORAGE", "chart, user", "Root for the files of all runs: a path or `gs://…`; `storage=` wins."),
    Variable("MLDIAG_SINKS", "chart, user", "Sinks for records: a comma list of their URLs; `sinks=` wins."),
    Variable(
        "MLDIAG_GOODPUT_LOG",
        "user",
        "Root for all goodput logs: a path, `gs://…` or `cloud-logging:`; in it `<logger>/<job>`. `log=` wins.",
    ),
    Variable(
        "MLDIAG_GOODPUT_EXPORTS",
        "user",
        "Comma-separated URLs of sinks, or `cloud-monitoring:`, that a `GoodputMonitor` tells too; `exports=` wins.",
    ),
    Variable(
        "ML_GOODPUT_CACHE_DIR",
        "user",
        "Where a `GoodputMonitor` (wins over `cache_dir=`) and the goodput command line keep what they have read.",
    ),
    Variable(
        "ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS",
        "user",
        "How often a `GoodputMonitor` copies that to its TensorBoard bucket; wins over `gcs_sync_interval_seconds=`.",
    ),
    Variable(
        "MLDIAG_SPOOL",
        "user",
        "Local directory where files wait for a storage or sink that does not take them; else XDG state, else TMPDIR.",
    ),
    Variable(
        "MLDIAG_ON_FULL",
        "user",
        "`drop` (if absent) or `wait`: what happens to a record when the buffer is full; `on_full=` wins.",
    ),
    Variable("MLDIAG_VIEW_URL", "chart", "Address of the web view, printed at start with the run id behind it."),
    Variable("MLDIAG_HEARTBEAT_SECONDS", "user", "Pause between signs of life, 0.1 to 3600; 10 if absent."),
    Variable("MLDIAG_PROFILER_PORT", "webhook, user", "Port of the profiler server, for local rank 0; 9999 if absent."),
    Variable(
        "MLDIAG_CONTROL_PLANE_URL, DIAGON_BASE_URL",
        "webhook",
        "Address of a control plane. Not used yet: one warning says so, and the run stays local.",
    ),
    Variable("MLDIAG_RUN_ID", "webhook", "Id of the run, the first source of identity."),
    Variable("MLDIAG_WORKLOAD", "webhook", "JSON object that describes the workload; recorded in `run.json`."),
    Variable(
        "GKE_DIAGON_IDENTIFIER", "webhook", "Google's identity, first part; used where `MLDIAG_RUN_ID` is absent."
    ),
    Variable("GKE_DIAGON_METADATA", "webhook", "Google's identity, second part."),
    Variable("MLDIAG_RANK", "webhook", "Number of the pod in the run; with `LOCAL_WORLD_SIZE` processes in each."),
    Variable("MLDIAG_WORLD_SIZE", "webhook", "Number of pods in the run."),
    Variable("MLDIAG_SLICE", "webhook", "Number of the TPU slice, or of the group of a LeaderWorkerSet."),
    Variable("MLDIAG_HOST_INDEX", "webhook", "Number of the host in its slice; recorded as the node is."),
    Variable("MLDIAG_ATTEMPT", "webhook", "How often the workload was restarted."),
    Variable("MLDIAG_POD_NAME", "webhook", "Name of the pod; the host's name if absent."),
    Variable("MLDIAG_POD_UID", "webhook", "Uid of the pod; recorded as the node is."),
    Variable("MLDIAG_NODE_NAME", "webhook", "Name of the node; in `run.json` and the records of phases."),
    Variable("MLDIAG_NAMESPACE, POD_NAMESPACE", "webhook, user", "Namespace of the pod."),
    Variable("MLDIAG_OWNER", "the SDK itself", "Tells subprocesses which process speaks for the run."),
    Variable("RUN_WORKLOAD_ID", "user", "Id that all processes of the run share; `run_workload_id=` wins."),
    Variable(
        "SLURM_JOB_ID, SLURM_CLUSTER_NAME, SLURM_JOB_START_TIME, SLURM_JOB_NAME", "Slurm", "Identity of a Slurm job."
    ),
    Variable(
        "TORCHELASTIC_RUN_ID, MEGASCALE_COORDINATOR_ADDRESS, JAX_COORDINATOR_ADDRESS, PMIX_NAMESPACE, "
        "LWS_LEADER_ADDRESS, MASTER_ADDR and MASTER_PORT, TPU_WORKER_HOSTNAMES, TPU_NAME",
        "launchers",
        "What all processes share: with the run's name the source of the run id where nothing above is set.",
    ),
    Variable(
        "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, "
        "OMPI_COMM_WORLD_LOCAL_RANK, JAX_PROCESS_ID, JAX_NUM_PROCESSES, SLURM_PROCID, SLURM_STEP_NUM_TASKS, "
        "SLURM_NTASKS, SLURM_LOCALID, SLURM_NODEID, NODE_RANK, NNODES, GROUP_RANK, GROUP_WORLD_SIZE, TPU_WORKER_ID, "
        "MEGASCALE_SLICE_ID, MEGASCALE_NUM_SLICES, LWS_WORKER_INDEX, LWS_GROUP_SIZE, JOB_COMPLETION_INDEX",
        "launchers",
        "Which process of the run this is.",
    ),
    Variable(
        "JOBSET_RESTART_ATTEMPT, SLURM_RESTART_COUNT, TORCHELASTIC_RESTART_COUNT",
        "launchers",
        "How often the workload was restarted, where `MLDIAG_ATTEMPT` is absent.",
    ),
    Variable(
        "KUBERNETES_SERVICE_HOST", "Kubernetes", "Tells that this is a pod: without storage its files end with it."
    ),
    Variable("JAX_PLATFORMS", "user", "`proxy` or `pathways` in it: the accelerators are orchestrated by Pathways."),
    Variable("GOOGLE_CLOUD_PROJECT", "user", "Google Cloud project, where a sink needs one; `project=` wins."),
    Variable(
        "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL",
        "user",
        "Receiver of the sink `otlp:`, and `grpc` (if absent) or `http/protobuf`.",
    ),
    Variable(
        "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_COMPRESSION, "
        "OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES",
        "user",
        "How any OTLP sink exports, as OpenTelemetry defines them.",
    ),
    Variable("CLOUDSDK_CONFIG, CLOUDSDK_ACTIVE_CONFIG_NAME", "user", "Where gcloud keeps its configuration."),
    Variable("GCE_METADATA_HOST", "user", "Address of the metadata server, if it is not 169.254.169.254."),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the environment says beyond identity; empty where it says nothing."""

    storage: str
    sinks: tuple[str, ...]
    on_full: OnFull
    view_url: str
    heartbeat_s: float
    in_kubernetes: bool


def read_settings(env: Mapping[str, str], problems: dict[str, str]) -> RunSettings:
    """Read the variables; `problems` takes what is malformed, by a key for each kind."""
    return RunSettings(
        storage=env.get("MLDIAG_STORAGE", ""),
        sinks=split_sinks(env.get("MLDIAG_SINKS", "")),
        on_full=_on_full(env.get("MLDIAG_ON_FULL", ""), problems),
        view_url=env.get("MLDIAG_VIEW_URL", "").rstrip("/"),
        heartbeat_s=_heartbeat_s(env.get("MLDIAG_HEARTBEAT_SECONDS", ""), problems),
        in_kubernetes=bool(env.get("KUBERNETES_SERVICE_HOST")),
    )


def _on_full(text: str, problems: dict[str, str]) -> OnFull:
    if text and text not in ON_FULL:
        problems["env-MLDIAG_ON_FULL"] = f"MLDIAG_ON_FULL={text!r} is not 'drop' or 'wait'; 'drop' is used"
    return ON_FULL.get(text, "drop")


def _heartbeat_s(text: str, problems: dict[str, str]) -> float:
    if not text:
        return DEFAULT_HEARTBEAT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if _SHORTEST_HEARTBEAT_S <= seconds <= _LONGEST_HEARTBEAT_S:
        return seconds
    problems["env-MLDIAG_HEARTBEAT_SECONDS"] = (
        f"MLDIAG_HEARTBEAT_SECONDS={text!r} is no number of seconds from {_SHORTEST_HEARTBEAT_S:g} to "
        f"{_LONGEST_HEARTBEAT_S:g}; {DEFAULT_HEARTBEAT_S:g} is used"
    )
    return DEFAULT_HEARTBEAT_S


def reference() -> str:
    """Return the page docs/reference/sdk-env.md."""
    rows = [
        f"| `{v.name.replace(', ', '`, `').replace(' and ', '`, `')}` | {v.set_by} | {v.meaning} |" for v in VARIABLES
    ]
    head = (
        "# Environment of the SDK",
        "",
        "Written by `python -m mldiagnostics.run.settings`; do not edit. A value that cannot be meant is told in one",
        "warning and ignored.",
        "",
        "| variable | set by | meaning |",
        "|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - that is its purpose
