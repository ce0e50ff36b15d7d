"""Which process of a run this is, by the numbers that launchers, schedulers and controllers give; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_JOB_OF_SET = re.compile(r"(?P<replicated_job>.+)-(?P<job>\d+)-(?P<index>\d+)")


@dataclass(frozen=True, slots=True)
class JaxProcess:
    """What `jax.distributed` knows, once the program has initialised it."""

    rank: int
    world_size: int
    coordinator: str


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """All that the decision may look at.

    `domain` is the host's DNS domain where it has one (`trainer.ml.svc.cluster.local` in a pod of a JobSet);
    `namespace` is that of the pod. `launcher` differs between launches on this host, and is the same for all
    processes with one parent.
    """

    env: Mapping[str, str]
    host: str
    domain: str = ""
    namespace: str = ""
    launcher: str = ""
    jax: JaxProcess | None = None


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """Which process of the run this is; all counts from 0, `slice` and `host_index` None where nothing tells."""

    rank: int
    world_size: int
    local_rank: int
    attempt: int
    slice: int | None
    host_index: int | None

    @property
    def leads(self) -> bool:
        """Whether this process speaks for the whole run."""
        return self.rank == 0 and not self.slice


@dataclass(frozen=True, slots=True)
class _Numbers:
    rank: int
    world_size: int | None = None
    local_rank: int = 0


class _IntegerReader:
    """Whole numbers out of variables; one that is none is a problem, and as good as absent."""

    def __init__(self, env: Mapping[str, str], problems: dict[str, str]) -> None:
        self._env = env
        self._problems = problems

    def first(self, *names: str) -> int | None:
        """Return the first number among the variables."""
        return next((number for name in names if (number := self._number(name)) is not None), None)

    def _number(self, name: str) -> int | None:
        text = self._env.get(name)
        if not text:
            return None
        number = whole_number(text)
        if number is None:
            self._problems[f"env-{name}"] = f"{name}={text!r} is no whole number from 0 on and is ignored"
        return number


def find_place(facts: ProcessEnvironment, problems: dict[str, str]) -> ProcessInfo:
    """Tell which process this is; `problems` takes what is malformed, by a key for each kind."""
    read = _IntegerReader(facts.env, problems)
    told = (numbers for launcher in _LAUNCHERS if (numbers := launcher(facts, read)) is not None)
    numbers = next(told, None) or _Numbers(0, local_rank=read.first("LOCAL_RANK") or 0)
    world_size = numbers.world_size
    if world_size is not None and numbers.rank >= world_size:
        problems["rank"] = (
            f"rank {numbers.rank} of {world_size} processes cannot be; the number of processes is ignored"
        )
        world_size = None
    return ProcessInfo(
        rank=numbers.rank,
        world_size=world_size or numbers.rank + 1,
        local_rank=numbers.local_rank,
        attempt=read.first(*_ATTEMPTS) or 0,
        slice=_slice(facts, read),
        host_index=read.first(*_HOST_INDICES),
    )


def _slice(facts: ProcessEnvironment, read: _IntegerReader) -> int | None:
    group = facts.env.get("LWS_LEADER_ADDRESS", "").partition(".")[0].rpartition("-")[2]
    job = job_of_set(facts)
    found = (read.first("MLDIAG_SLICE", "MEGASCALE_SLICE_ID"), whole_number(group), job[1] if job else None)
    return next((number for number in found if number is not None), None)


def _told_by(rank: str, *world_size: str, local_rank: str = "LOCAL_RANK", needs: str = "") -> _Launcher:
    """Return a launcher that numbers processes in these variables, where `needs` is set too."""

    def numbers(facts: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
        if needs and not facts.env.get(needs):
            return None
        found = read.first(rank)
        return None if found is None else _Numbers(found, read.first(*world_size), read.first(local_rank) or 0)

    return numbers


def _jax_process(facts: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    if facts.jax is None:
        return None
    return _Numbers(facts.jax.rank, facts.jax.world_size, read.first("LOCAL_RANK", "SLURM_LOCALID") or 0)


def _injected_pod(_: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    """Injected numbers count pods, of which each may run as many processes as this one."""
    pod = read.first("MLDIAG_RANK")
    if pod is None:
        return None
    here, pods = read.first("LOCAL_WORLD_SIZE") or 1, read.first("MLDIAG_WORLD_SIZE")
    local_rank = read.first("LOCAL_RANK") or 0
    return _Numbers(pod * here + local_rank, None if pods is None else pods * here, local_rank)


def _tpu_host(facts: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    worker = read.first("TPU_WORKER_ID")
    if worker is None:
        return None
    hosts = facts.env.get("TPU_WORKER_HOSTNAMES", "").count(",") + 1
    slices = read.first("MEGASCALE_NUM_SLICES") or 1
    rank = (read.first("MEGASCALE_SLICE_ID") or 0) * hosts + worker
    return _Numbers(rank, hosts * slices, read.first("LOCAL_RANK") or 0)


_Launcher: TypeAlias = "Callable[[ProcessEnvironment, _IntegerReader], _Numbers | None]"
_LAUNCHERS: tuple[_Launcher, ...] = (
    # the first that tells anything is believed
    _told_by("RANK", "WORLD_SIZE", needs="LOCAL_RANK"),  # torchrun, DeepSpeed, Accelerate: they count processes
    _jax_process,
    _told_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", local_rank="OMPI_COMM_WORLD_LOCAL_RANK"),
    _injected_pod,
    _told_by("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
    _told_by("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", local_rank="SLURM_LOCALID"),
    _told_by("RANK", "WORLD_SIZE"),
    _told_by("NODE_RANK", "NNODES"),
    _told_by("GROUP_RANK", "GROUP_WORLD_SIZE"),
    _tpu_host,
    _told_by("LWS_WORKER_INDEX", "LWS_GROUP_SIZE"),
    _told_by("JOB_COMPLETION_INDEX"),
)
_ATTEMPTS = ("MLDIAG_ATTEMPT", "JOBSET_RESTART_ATTEMPT", "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")
_HOST_INDICES = ("MLDIAG_HOST_INDEX", "TPU_WORKER_ID", "SLURM_NODEID", "GROUP_RANK", "JOB_COMPLETION_INDEX")


def job_of_set(facts: ProcessEnvironment) -> tuple[str, int] | None:
    """Return JobSet and job index of a host `<set>-<replicated job>-<job>-<pod>` in the domain `<set>.<namespace>…`."""
    group = facts.domain.partition(".")[0]
    if not group or not facts.host.startswith(f"{group}-"):
        return None
    found = _JOB_OF_SET.fullmatch(facts.host.removeprefix(f"{group}-"))
    return (group, int(found["job"])) if found else None


def whole_number(text: str | None) -> int | None:
    """Return the number that a text is, None if it is none from 0 on."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text.strip()) else None
