"""Resolve the run id and the rank of a process from its environment; pure.

All processes of a run derive the same run id without communication, so only shared values enter it, in this order:
the injected variables, the Slurm job, the chosen workload id, the values that a launcher gives to all processes. Only a
single process gets a fresh id.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.identity import run_id
from mldiagnostics.identity.process import job_of_set, process_info, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.identity.process import ProcessEnvironment, ProcessInfo

Source: TypeAlias = Literal["injected", "slurm", "workload-id", "launcher", "name", "fresh"]
"""Source of a run id; `name` is the last resort of processes that share nothing else."""

_AS_IT_IS = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_INJECTED = re.compile(r"[0-9a-f]{64}|[a-z0-9][a-z0-9._-]{0,62}")
_IDENTIFIER_KEYS = ("clustername", "namespace", "metadata.kind", "metadata.name")
_INDEXED_HOST = re.compile(r"(?P<job>.+)-(?P<index>\d+)")


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """A run id, its source, and a description of the workload (JSON types only)."""

    run_id: str
    source: Source
    workload: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ResolvedIdentity:
    """Run and number of a process.

    Attributes:
        identity: Run id and its source, None for a single process, which may take a fresh id.
        process: Number of the process in the run.
        host: Name of the pod or host.
        namespace: Kubernetes namespace, empty outside a cluster.
        problems: Messages about invalid variables, by key.
        node: Name of the node, if injected.
        pod_uid: Uid of the pod, if injected.
    """

    identity: RunIdentity | None
    process: ProcessInfo
    host: str
    namespace: str
    problems: Mapping[str, str]
    node: str = ""
    pod_uid: str = ""


def locate(
    environment: ProcessEnvironment, *, name: str, workload_id: str | None = None, cluster: str = ""
) -> ResolvedIdentity:
    """Return the run and the number of a process.

    Args:
        environment: Environment of the process.
        name: Name that the program gave its run.
        workload_id: Id that the program shares with the other processes of its run.
        cluster: Name of the cluster, if the program gave one.
    """
    problems: dict[str, str] = {}
    process = process_info(environment, problems)
    namespace = environment.env.get("MLDIAG_NAMESPACE") or environment.env.get("POD_NAMESPACE") or environment.namespace
    identity = (
        _injected(environment.env, problems, cluster)
        or _slurm(environment.env, problems, cluster)
        or _chosen(workload_id or environment.env.get("RUN_WORKLOAD_ID"), namespace)
        or _peer_workload(environment.env.get("DIAGON_WORKLOAD_ID", ""), namespace)
        or _launched(environment, name=name, namespace=namespace)
    )
    if identity is None and (process.world_size > 1 or process.rank):
        problems["identity"] = (
            f"the {process.world_size} processes of run {name!r} share no id, so the run id is derived from the name "
            "and later runs of this name get the same id; set run_workload_id or RUN_WORKLOAD_ID to one value for all"
        )
        identity = RunIdentity(_digest("name", namespace, name), "name")
    return ResolvedIdentity(
        identity=identity,
        process=process,
        host=environment.env.get("MLDIAG_POD_NAME") or environment.host,
        namespace=namespace or str((identity and identity.workload.get("namespace")) or ""),
        problems=problems,
        node=environment.env.get("MLDIAG_NODE_NAME", ""),
        pod_uid=environment.env.get("MLDIAG_POD_UID", ""),
    )


def _injected(env: Mapping[str, str], problems: dict[str, str], cluster: str) -> RunIdentity | None:
    """Return the injected identity: from our variables, else from Google's."""
    workload = _json_object(env, "MLDIAG_WORKLOAD", problems)
    ours = env.get("MLDIAG_RUN_ID", "")
    if _INJECTED.fullmatch(ours):
        return RunIdentity(ours, "injected", MappingProxyType(workload))
    if ours:
        problems["env-MLDIAG_RUN_ID"] = f"MLDIAG_RUN_ID={ours!r} is not a run id (64 hex digits) and is ignored"
    return _google(env, problems, cluster)


def _google(env: Mapping[str, str], problems: dict[str, str], given_cluster: str) -> RunIdentity | None:
    identifier = _json_object(env, "GKE_DIAGON_IDENTIFIER", problems)
    metadata = _json_object(env, "GKE_DIAGON_METADATA", problems)
    if not identifier or not metadata:
        return None
    identifier = {**identifier, "clustername": identifier.get("clustername") or given_cluster}
    parts = [identifier.get(key) for key in _IDENTIFIER_KEYS]
    created = metadata.get("creation-timestamp") or metadata.get("timestamp")
    try:
        cluster, namespace, kind, name = (_text(key, part) for key, part in zip(_IDENTIFIER_KEYS, parts, strict=True))
        moment = _moment(_text("creation-timestamp", created))
        injected = run_id(cluster=cluster, namespace=namespace, kind=kind, name=name, created=moment)
    except ValueError as error:
        problems["env-GKE_DIAGON"] = f"GKE_DIAGON_IDENTIFIER and GKE_DIAGON_METADATA are ignored: {error}"
        return None
    workload = {
        "cluster": cluster,
        "namespace": namespace,
        "kind": kind,
        "name": name,
        "creationTimestamp": moment.isoformat(),
        "labels": _labels(str(metadata.get("associated-labels") or "")),
    }
    if parent := metadata.get("parent-workload"):
        workload["parent"] = str(parent)
    return RunIdentity(injected, "injected", MappingProxyType(workload))


def _slurm(env: Mapping[str, str], problems: dict[str, str], given_cluster: str) -> RunIdentity | None:
    """Return the identity of a Slurm job.

    It follows the formula of Google's SDK if the start time is known.
    """
    cluster, job, started = (env.get(f"SLURM_{key}", "") for key in ("CLUSTER_NAME", "JOB_ID", "JOB_START_TIME"))
    if not job:
        return None
    cluster = given_cluster or cluster
    parts = [cluster or "slurm", job]
    if started:
        try:
            parts.append(datetime.fromtimestamp(int(started), tz=timezone.utc).strftime("%Y%m%d-%H%M%S"))
        except (ValueError, OverflowError, OSError):
            problems["env-SLURM_JOB_START_TIME"] = f"SLURM_JOB_START_TIME={started!r} is not a Unix time and is ignored"
    workload = {"kind": "SlurmJob", "cluster": cluster, "name": env.get("SLURM_JOB_NAME", ""), "jobId": job}
    return RunIdentity(_digest(*parts, joint="_"), "slurm", MappingProxyType(workload))


def _chosen(workload_id: str | None, namespace: str) -> RunIdentity | None:
    if not workload_id:
        return None
    if _AS_IT_IS.fullmatch(workload_id):
        return RunIdentity(workload_id, "workload-id")
    return RunIdentity(_digest("workload-id", namespace, workload_id), "workload-id")


def _peer_workload(workload_id: str, namespace: str) -> RunIdentity | None:
    """Return the identity of the id for Google's SDK, often the run id."""
    if _INJECTED.fullmatch(workload_id):
        return RunIdentity(workload_id, "workload-id")
    return _chosen(workload_id, namespace)


def _launched(environment: ProcessEnvironment, *, name: str, namespace: str) -> RunIdentity | None:
    """Return the identity made of the launcher's shared value and the name of the run."""
    for shared in _SHARED:
        if value := shared(environment):
            return RunIdentity(_digest("launcher", namespace, name, value), "launcher")
    return None


def _torchrun(environment: ProcessEnvironment) -> str:
    """Return torchrun's run id.

    With its default, `none`, the shared parent process on one host.
    """
    env = environment.env
    torchrun_id = env.get("TORCHELASTIC_RUN_ID", "")
    if torchrun_id in {"", "none"}:
        alone = torchrun_id and env.get("LOCAL_WORLD_SIZE", "?") == env.get("WORLD_SIZE")
        return f"torchrun/{environment.host}/{environment.launcher}" if alone and environment.launcher else ""
    return f"torchrun/{torchrun_id}"


def _jax(environment: ProcessEnvironment) -> str:
    if environment.jax is not None and environment.jax.coordinator:
        return f"jax/{environment.jax.coordinator}"
    address = environment.env.get("JAX_COORDINATOR_ADDRESS", "")
    return f"jax/{address}" if address else ""


def _variable(*names: str) -> Callable[[ProcessEnvironment], str]:
    """Return a source that is the value of these variables, if all are set."""

    def value(environment: ProcessEnvironment) -> str:
        values = [environment.env.get(name, "") for name in names]
        return f"{'+'.join(names)}/{':'.join(values)}" if all(values) else ""

    return value


def _leader_worker_set(environment: ProcessEnvironment) -> str:
    """Return `<set>.<namespace>` of the address of a group's leader."""
    _, _, address = environment.env.get("LWS_LEADER_ADDRESS", "").partition(".")
    return f"lws/{address}" if address else ""


def _master(environment: ProcessEnvironment) -> str:
    grouped = environment.torch.world_size if environment.torch else 0
    together = max(grouped, whole_number(environment.env.get("WORLD_SIZE")) or 0)
    return _variable("MASTER_ADDR", "MASTER_PORT")(environment) if together > 1 else ""


def _tpu_hosts(environment: ProcessEnvironment) -> str:
    hosts = environment.env.get("TPU_WORKER_HOSTNAMES", "")
    return f"tpu/{hosts}" if "," in hosts else ""


def _indexed_job(environment: ProcessEnvironment) -> str:
    """Return the JobSet or Job by the name that its controller gives to hosts."""
    if "JOB_COMPLETION_INDEX" not in environment.env:
        return ""
    if job := job_of_set(environment):
        return f"jobset/{job[0]}"
    match = _INDEXED_HOST.fullmatch(environment.host)
    return f"job/{match['job']}" if match and match["index"] == environment.env["JOB_COMPLETION_INDEX"] else ""


_SHARED: tuple[Callable[[ProcessEnvironment], str], ...] = (
    _torchrun,
    _variable("MEGASCALE_COORDINATOR_ADDRESS"),
    _jax,
    _variable("PMIX_NAMESPACE"),
    _leader_worker_set,
    _master,
    _indexed_job,
    _tpu_hosts,
    _variable("TPU_NAME"),
)


def _json_object(env: Mapping[str, str], name: str, problems: dict[str, str]) -> dict[str, object]:
    text = env.get(name)
    if not text:
        return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems[f"env-{name}"] = f"{name} is not valid JSON and is ignored: {error}"
        return {}
    if not isinstance(document, dict):
        problems[f"env-{name}"] = f"{name} is not a JSON object and is ignored"
        return {}
    return document


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{key!r} is missing or empty")
    return value


def _moment(text: str) -> datetime:
    """Parse an RFC 3339 time, with or without a fraction of any length."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?", text.strip())
    if not match:
        raise ConfigurationError(f"creation-timestamp {text!r} is not a time like 2026-04-24T03:04:05Z")
    offset = "+00:00" if match[2] in {None, "Z", "z"} else match[2]
    return datetime.fromisoformat(match[1].replace("t", "T") + offset)


def _labels(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.split(",") if item.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _digest(*parts: str, joint: str = "\0") -> str:
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that a single process never needs

    return hashlib.sha256(joint.join(parts).encode("utf-8", "surrogatepass")).hexdigest()
