"""Where a process stands: which run it belongs to and which process of it this is, told from its environment alone.

All processes of a run must come to one run id without talking to each other, so only what they share may enter it, in
this order: what a webhook injected, the Slurm job, a workload id that somebody chose, what the launcher gives to all.
Only a process that is alone gets a fresh id. Nothing here reads a file, a clock or the network.
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
from mldiagnostics.identity.process import find_place, job_of_set, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.identity.process import ProcessEnvironment, ProcessInfo

Source: TypeAlias = Literal["injected", "slurm", "workload-id", "launcher", "name", "fresh"]
"""What the run id comes from; `name` is the way out for processes that share nothing else."""

_AS_IT_IS = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_INJECTED = re.compile(r"[0-9a-f]{64}|[a-z0-9][a-z0-9._-]{0,62}")
_IDENTIFIER_KEYS = ("clustername", "namespace", "metadata.kind", "metadata.name")
_INDEXED_HOST = re.compile(r"(?P<job>.+)-(?P<index>\d+)")


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """A run id, what it comes from, and what is known of the workload (JSON types only)."""

    run_id: str
    source: Source
    workload: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ResolvedIdentity:
    """The whole answer; `identity` is None for a process that is alone and may take a fresh id.

    `problems` are sentences for people, keyed for counting.
    """

    identity: RunIdentity | None
    place: ProcessInfo
    host: str
    namespace: str
    problems: Mapping[str, str]
    node: str = ""
    pod_uid: str = ""


def locate(facts: ProcessEnvironment, *, name: str, workload_id: str | None = None) -> ResolvedIdentity:
    """Tell which run this process belongs to and which part of it this is.

    `name` is the name that the program gave its run, `workload_id` an id that it shares with other processes.
    """
    problems: dict[str, str] = {}
    place = find_place(facts, problems)
    namespace = facts.env.get("MLDIAG_NAMESPACE") or facts.env.get("POD_NAMESPACE") or facts.namespace
    identity = (
        _injected(facts.env, problems)
        or _slurm(facts.env, problems)
        or _chosen(workload_id or facts.env.get("RUN_WORKLOAD_ID"), namespace)
        or _launched(facts, name=name, namespace=namespace)
    )
    if identity is None and (place.world_size > 1 or place.rank):
        problems["identity"] = (
            f"the {place.world_size} processes of run {name!r} share no id, so its name stands for it and a later run "
            "of that name will be taken for the same: set run_workload_id or RUN_WORKLOAD_ID to one value for all"
        )
        identity = RunIdentity(_digest("name", namespace, name), "name")
    return ResolvedIdentity(
        identity=identity,
        place=place,
        host=facts.env.get("MLDIAG_POD_NAME") or facts.host,
        namespace=namespace or str((identity and identity.workload.get("namespace")) or ""),
        problems=problems,
        node=facts.env.get("MLDIAG_NODE_NAME", ""),
        pod_uid=facts.env.get("MLDIAG_POD_UID", ""),
    )


def _injected(env: Mapping[str, str], problems: dict[str, str]) -> RunIdentity | None:
    """Return the identity that a webhook put here: ours, else the one in Google's two variables."""
    workload = _json_object(env, "MLDIAG_WORKLOAD", problems)
    ours = env.get("MLDIAG_RUN_ID", "")
    if _INJECTED.fullmatch(ours):
        return RunIdentity(ours, "injected", MappingProxyType(workload))
    if ours:
        problems["env-MLDIAG_RUN_ID"] = f"MLDIAG_RUN_ID={ours!r} is no run id (64 hex digits) and is ignored"
    return _google(env, problems)


def _google(env: Mapping[str, str], problems: dict[str, str]) -> RunIdentity | None:
    identifier = _json_object(env, "GKE_DIAGON_IDENTIFIER", problems)
    metadata = _json_object(env, "GKE_DIAGON_METADATA", problems)
    if not identifier or not metadata:
        return None
    parts = [identifier.get(key) for key in _IDENTIFIER_KEYS]
    created = metadata.get("creation-timestamp") or metadata.get("timestamp")
    try:
        cluster, namespace, kind, name = (_text(key, part) for key, part in zip(_IDENTIFIER_KEYS, parts, strict=True))
        moment = _moment(_text("creation-timestamp", created))
        found = run_id(cluster=cluster, namespace=namespace, kind=kind, name=name, created=moment)
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
    return RunIdentity(found, "injected", MappingProxyType(workload))


def _slurm(env: Mapping[str, str], problems: dict[str, str]) -> RunIdentity | None:
    """Return the identity of a Slurm job, by the formula of Google's SDK where Slurm says when the job started."""
    cluster, job, started = (env.get(f"SLURM_{key}", "") for key in ("CLUSTER_NAME", "JOB_ID", "JOB_START_TIME"))
    if not job:
        return None
    parts = [cluster or "slurm", job]
    if started:
        try:
            parts.append(datetime.fromtimestamp(int(started), tz=timezone.utc).strftime("%Y%m%d-%H%M%S"))
        except (ValueError, OverflowError, OSError):
            problems["env-SLURM_JOB_START_TIME"] = f"SLURM_JOB_START_TIME={started!r} is no Unix time and is ignored"
    workload = {"kind": "SlurmJob", "cluster": cluster, "name": env.get("SLURM_JOB_NAME", ""), "jobId": job}
    return RunIdentity(_digest(*parts, joint="_"), "slurm", MappingProxyType(workload))


def _chosen(workload_id: str | None, namespace: str) -> RunIdentity | None:
    if not workload_id:
        return None
    if _AS_IT_IS.fullmatch(workload_id):
        return RunIdentity(workload_id, "workload-id")
    return RunIdentity(_digest("workload-id", namespace, workload_id), "workload-id")


def _launched(facts: ProcessEnvironment, *, name: str, namespace: str) -> RunIdentity | None:
    """Return the identity made of what the launcher gave to all processes and the name of the run."""
    for shared in _SHARED:
        if found := shared(facts):
            return RunIdentity(_digest("launcher", namespace, name, found), "launcher")
    return None


def _torchrun(facts: ProcessEnvironment) -> str:
    """Return torchrun's run id; its default is `none`, and then processes on one host have one parent."""
    env = facts.env
    found = env.get("TORCHELASTIC_RUN_ID", "")
    if found in {"", "none"}:
        alone = found and env.get("LOCAL_WORLD_SIZE", "?") == env.get("WORLD_SIZE")
        return f"torchrun/{facts.host}/{facts.launcher}" if alone and facts.launcher else ""
    return f"torchrun/{found}"


def _jax(facts: ProcessEnvironment) -> str:
    if facts.jax is not None and facts.jax.coordinator:
        return f"jax/{facts.jax.coordinator}"
    address = facts.env.get("JAX_COORDINATOR_ADDRESS", "")
    return f"jax/{address}" if address else ""


def _variable(*names: str) -> Callable[[ProcessEnvironment], str]:
    """Return a source that is the value of variables which are all set."""

    def value(facts: ProcessEnvironment) -> str:
        values = [facts.env.get(name, "") for name in names]
        return f"{'+'.join(names)}/{':'.join(values)}" if all(values) else ""

    return value


def _leader_worker_set(facts: ProcessEnvironment) -> str:
    """Return `<set>.<namespace>` of `<set>-<group>.<set>.<namespace>`, the address of a group's leader."""
    _, _, address = facts.env.get("LWS_LEADER_ADDRESS", "").partition(".")
    return f"lws/{address}" if address else ""


def _master(facts: ProcessEnvironment) -> str:
    together = whole_number(facts.env.get("WORLD_SIZE")) or 0
    return _variable("MASTER_ADDR", "MASTER_PORT")(facts) if together > 1 else ""


def _tpu_hosts(facts: ProcessEnvironment) -> str:
    hosts = facts.env.get("TPU_WORKER_HOSTNAMES", "")
    return f"tpu/{hosts}" if "," in hosts else ""


def _indexed_job(facts: ProcessEnvironment) -> str:
    """Return the JobSet or the Job by the name that its controller gives to hosts."""
    if "JOB_COMPLETION_INDEX" not in facts.env:
        return ""
    if job := job_of_set(facts):
        return f"jobset/{job[0]}"
    found = _INDEXED_HOST.fullmatch(facts.host)
    return f"job/{found['job']}" if found and found["index"] == facts.env["JOB_COMPLETION_INDEX"] else ""


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
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems[f"env-{name}"] = f"{name} is no JSON and is ignored: {error}"
        return {}
    if not isinstance(found, dict):
        problems[f"env-{name}"] = f"{name} holds no JSON object and is ignored"
        return {}
    return found


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{key!r} is missing or empty")
    return value


def _moment(text: str) -> datetime:
    """Read RFC 3339 as Kubernetes and people write it: `Z` or an offset, with or without a fraction of any length."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?", text.strip())
    if not found:
        raise ConfigurationError(f"creation-timestamp {text!r} is no time like 2026-04-24T03:04:05Z")
    offset = "+00:00" if found[2] in {None, "Z", "z"} else found[2]
    return datetime.fromisoformat(found[1].replace("t", "T") + offset)


def _labels(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.split(",") if item.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _digest(*parts: str, joint: str = "\0") -> str:
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that a process which is alone never needs

    return hashlib.sha256(joint.join(parts).encode("utf-8", "surrogatepass")).hexdigest()
