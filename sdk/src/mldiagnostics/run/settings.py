"""The environment variables of the SDK, as one table that is read and documented.

python -m mldiagnostics.run.settings    print docs/reference/sdk-env.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OnFull: TypeAlias = Literal["drop", "wait"]
"""Treatment of records while the buffer is full."""

ON_FULL: Mapping[str, OnFull] = {"drop": "drop", "wait": "wait"}
DEFAULT_HEARTBEAT_S = 10.0
_SHORTEST_HEARTBEAT_S, _LONGEST_HEARTBEAT_S = 0.1, 3600.0


def _on_full(text: str) -> OnFull:
    if text not in ON_FULL:
        raise ValueError("is not 'drop' or 'wait'; 'drop' is used")
    return ON_FULL[text]


def _heartbeat_s(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if _SHORTEST_HEARTBEAT_S <= seconds <= _LONGEST_HEARTBEAT_S:
        return seconds
    raise ValueError(
        f"is not a number of seconds from {_SHORTEST_HEARTBEAT_S:g} to {_LONGEST_HEARTBEAT_S:g}; "
        f"{DEFAULT_HEARTBEAT_S:g} is used"
    )


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable, or several of one meaning.

    Attributes:
        name: Name of the variable, or names separated by commas.
        set_by: Component or person that usually sets it.
        meaning: Description in the reference.
        field: Field of `RunSettings` that has the value, None for variables that other modules read.
        default: Value of the field if the variable is absent, empty or invalid.
        parse: Returns the value of the field; raises ValueError with the problem.
    """

    name: str
    set_by: str
    meaning: str
    field: str | None = None
    default: Any = ""
    parse: Callable[[str], Any] = str


VARIABLES = (
    Variable(
        "MLDIAG_STORAGE",
        "chart, user",
        "Root of the files of all runs: a path, `gs://…`, `s3://…` or `az://…`; `storage=` wins.",
        field="storage",
    ),
    Variable(
        "MLDIAG_SINKS",
        "chart, user",
        "Comma-separated URLs of sinks for records; `sinks=` wins.",
        field="sinks",
        default=(),
        parse=split_sinks,
    ),
    Variable(
        "MLDIAG_GOODPUT_LOG",
        "user",
        "Root of all goodput logs: a path, `gs://…`, `s3://…`, `az://…` or `cloud-logging:`, with logs at "
        "`<logger>/<job>`; `log=` wins.",
    ),
    Variable(
        "MLDIAG_GOODPUT_EXPORTS",
        "user",
        "Comma-separated URLs of sinks, or `cloud-monitoring:`, for a `GoodputMonitor`; `exports=` wins.",
    ),
    Variable(
        "ML_GOODPUT_CACHE_DIR",
        "user",
        "Cache directory of a `GoodputMonitor` and of the goodput command line; wins over `cache_dir=`.",
    ),
    Variable(
        "ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS",
        "user",
        "Seconds between copies of that cache to the TensorBoard bucket; wins over `gcs_sync_interval_seconds=`.",
    ),
    Variable(
        "MLDIAG_SPOOL",
        "user",
        "Local directory of files that wait for a failed storage or sink; else XDG state, else TMPDIR.",
    ),
    Variable(
        "MLDIAG_ON_FULL",
        "user",
        "`drop` (default) or `wait`: treatment of records while the buffer is full; `on_full=` wins.",
        field="on_full",
        default="drop",
        parse=_on_full,
    ),
    Variable(
        "MLDIAG_VIEW_URL",
        "chart",
        "Address of the web view, printed at the start of a run with the run id appended.",
        field="view_url",
        parse=lambda text: text.rstrip("/"),
    ),
    Variable(
        "MLDIAG_HEARTBEAT_SECONDS",
        "user",
        "Seconds between heartbeats, 0.1 to 3600; default 10.",
        field="heartbeat_s",
        default=DEFAULT_HEARTBEAT_S,
        parse=_heartbeat_s,
    ),
    Variable("MLDIAG_PROFILER_PORT", "webhook, user", "Port of the profiler server of local rank 0; default 9999."),
    Variable(
        "MLDIAG_CONTROL_PLANE_URL",
        "webhook, user",
        "URL of the control plane to which this process reports; `base_url=` wins.",
        field="control_plane_url",
    ),
    Variable(
        "MLDIAG_CONTROL_PLANE_CA",
        "webhook, user",
        "File with the certificates that are trusted for the control plane; default: those of the system.",
        field="control_plane_ca",
    ),
    Variable(
        "MLDIAG_CONTROL_PLANE_TOKEN_FILE",
        "user",
        "File with a service account's token of the audience `mldiagnostics`; default "
        "`/var/run/secrets/mldiagnostics/token`. It is read again for each report, and sent by HTTPS only.",
        field="control_plane_token_file",
    ),
    Variable(
        "DIAGON_BASE_URL",
        "webhook, user",
        "URL of a control plane, as in Google's SDK, if neither `base_url=` nor `MLDIAG_CONTROL_PLANE_URL` is set. "
        "A server without our API gets no more reports, with one warning.",
        field="peer_url",
    ),
    Variable(
        "DIAGON_CLUSTER_ID",
        "webhook, user",
        "Name of the cluster, as in Google's SDK; `cluster_id=` wins.",
        field="cluster_id",
    ),
    Variable(
        "DIAGON_WORKLOAD_ID",
        "webhook, user",
        "Id that all processes of the run share, as in Google's SDK; used if `RUN_WORKLOAD_ID` is absent.",
    ),
    Variable("MLDIAG_RUN_ID", "webhook", "Id of the run; wins over all other sources of the id."),
    Variable("MLDIAG_WORKLOAD", "webhook", "JSON object that describes the workload; recorded in `run.json`."),
    Variable("GKE_DIAGON_IDENTIFIER", "webhook", "Google's identity, first part; used if `MLDIAG_RUN_ID` is absent."),
    Variable("GKE_DIAGON_METADATA", "webhook", "Google's identity, second part."),
    Variable("MLDIAG_RANK", "webhook", "Number of the pod in the run; each pod has `LOCAL_WORLD_SIZE` processes."),
    Variable("MLDIAG_WORLD_SIZE", "webhook", "Number of pods in the run."),
    Variable("MLDIAG_SLICE", "webhook", "Number of the TPU slice, or of the group of a LeaderWorkerSet."),
    Variable("MLDIAG_HOST_INDEX", "webhook", "Number of the host in its slice; recorded in `run.json`."),
    Variable("MLDIAG_ATTEMPT", "webhook", "Number of restarts of the workload."),
    Variable("MLDIAG_POD_NAME", "webhook", "Name of the pod; default: name of the host."),
    Variable("MLDIAG_POD_UID", "webhook", "Uid of the pod; recorded in `run.json`."),
    Variable("MLDIAG_NODE_NAME", "webhook", "Name of the node; recorded in `run.json` and in phase records."),
    Variable("MLDIAG_NAMESPACE, POD_NAMESPACE", "webhook, user", "Namespace of the pod."),
    Variable("MLDIAG_OWNER", "the SDK itself", "Names the leading process of the run to its subprocesses."),
    Variable("RUN_WORKLOAD_ID", "user", "Id that all processes of the run share; `run_workload_id=` wins."),
    Variable(
        "SLURM_JOB_ID, SLURM_CLUSTER_NAME, SLURM_JOB_START_TIME, SLURM_JOB_NAME", "Slurm", "Identity of a Slurm job."
    ),
    Variable(
        "TORCHELASTIC_RUN_ID, MEGASCALE_COORDINATOR_ADDRESS, JAX_COORDINATOR_ADDRESS, PMIX_NAMESPACE, "
        "LWS_LEADER_ADDRESS, MASTER_ADDR and MASTER_PORT, TPU_WORKER_HOSTNAMES, TPU_NAME",
        "launchers",
        "Value that all processes share: source of the run id, with the run's name, if none above is set.",
    ),
    Variable(
        "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, "
        "OMPI_COMM_WORLD_LOCAL_RANK, JAX_PROCESS_ID, JAX_NUM_PROCESSES, SLURM_PROCID, SLURM_STEP_NUM_TASKS, "
        "SLURM_NTASKS, SLURM_LOCALID, SLURM_NODEID, NODE_RANK, NNODES, GROUP_RANK, GROUP_WORLD_SIZE, TPU_WORKER_ID, "
        "MEGASCALE_SLICE_ID, MEGASCALE_NUM_SLICES, LWS_WORKER_INDEX, LWS_GROUP_SIZE, JOB_COMPLETION_INDEX",
        "launchers",
        "Number of the process in the run.",
    ),
    Variable(
        "JOBSET_RESTART_ATTEMPT, SLURM_RESTART_COUNT, TORCHELASTIC_RESTART_COUNT",
        "launchers",
        "Number of restarts of the workload, if `MLDIAG_ATTEMPT` is absent.",
    ),
    Variable(
        "KUBERNETES_SERVICE_HOST",
        "Kubernetes",
        "Marks a pod: without `storage=` a warning says that the files end with the pod.",
        field="in_kubernetes",
        default=False,
        parse=bool,
    ),
    Variable("JAX_PLATFORMS", "user", "With `proxy` or `pathways` in it, Pathways orchestrates the accelerators."),
    Variable("GOOGLE_CLOUD_PROJECT", "user", "Google Cloud project for sinks that need one; `project=` wins."),
    Variable(
        "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL",
        "user",
        "Receiver of the sink `otlp:`, and its protocol: `grpc` (default) or `http/protobuf`.",
    ),
    Variable(
        "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_COMPRESSION, "
        "OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES",
        "user",
        "Options of all OTLP sinks, as OpenTelemetry defines them.",
    ),
    Variable("CLOUDSDK_CONFIG, CLOUDSDK_ACTIVE_CONFIG_NAME", "user", "Location and name of the gcloud configuration."),
    Variable("GCE_METADATA_HOST", "user", "Address of the metadata server; default 169.254.169.254."),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Values of the variables that a run itself reads, defaults included."""

    storage: str
    sinks: tuple[str, ...]
    on_full: OnFull
    view_url: str
    heartbeat_s: float
    control_plane_url: str
    control_plane_ca: str
    control_plane_token_file: str
    peer_url: str
    cluster_id: str
    in_kubernetes: bool


def read_settings(env: Mapping[str, str], problems: dict[str, str]) -> RunSettings:
    """Return the settings; `problems` receives a message for each invalid variable."""
    values = {each.field: _value(each, env.get(each.name, ""), problems) for each in VARIABLES if each.field}
    return RunSettings(**values)


def _value(variable: Variable, text: str, problems: dict[str, str]) -> Any:
    if not text:
        return variable.default
    try:
        return variable.parse(text)
    except ValueError as error:
        problems[f"env-{variable.name}"] = f"{variable.name}={text!r} {error}"
        return variable.default


def reference() -> str:
    """Return the page docs/reference/sdk-env.md."""
    rows = [
        f"| `{v.name.replace(', ', '`, `').replace(' and ', '`, `')}` | {v.set_by} | {v.meaning} |" for v in VARIABLES
    ]
    head = (
        "# Environment of the SDK",
        "",
        "Written by `python -m mldiagnostics.run.settings`; do not edit. Invalid values are ignored with one warning.",
        "",
        "| variable | set by | meaning |",
        "|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - a command line
