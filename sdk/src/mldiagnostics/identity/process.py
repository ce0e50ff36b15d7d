"""Number the processes of a run by the variables of launchers and controllers.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_JOB_OF_SET = re.compile(r"(?P<replicated_job>.+)-(?P<job>\d+)-(?P<index>\d+)")


@dataclass(frozen=True, slots=True)
class JaxProcess:
    """A process of `jax.distributed`."""

    rank: int
    world_size: int
    coordinator: str


@dataclass(frozen=True, slots=True)
class TorchProcess:
    """A process of the default group of `torch.distributed`."""

    rank: int
    world_size: int


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """Inputs of the decisions about identity.

    Attributes:
        env: Environment variables.
        host: Name of the host.
        domain: DNS domain of the host, such as `trainer.ml.svc.cluster.local` in a pod of a JobSet.
        namespace: Namespace of the pod.
        launcher: Id of the parent process, different for each launch on this host.
        jax: Process of `jax.distributed`, if initialised.
        torch: Process of `torch.distributed`, if initialised.
    """

    env: Mapping[str, str]
    host: str
    domain: str = ""
    namespace: str = ""
    launcher: str = ""
    jax: JaxProcess | None = None
    torch: TorchProcess | None = None


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """Number of a process in its run.

    All numbers from 0, `slice` and `host_index` None if unknown.
    """

    rank: int
    world_size: int
    local_rank: int
    attempt: int
    slice: int | None
    host_index: int | None

    @property
    def leads(self) -> bool:
        """Whether this process leads the run."""
        return self.rank == 0 and not self.slice


@dataclass(frozen=True, slots=True)
class _Numbers:
    rank: int
    world_size: int | None = None
    local_rank: int = 0


class _IntegerReader:
    """Reads whole numbers from variables; an invalid one is reported and ignored."""

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
            self._problems[f"env-{name}"] = f"{name}={text!r} is not a whole number of at least 0 and is ignored"
        return number


def process_info(environment: ProcessEnvironment, problems: dict[str, str]) -> ProcessInfo:
    """Return the number of this process.

    `problems` receives a message for each invalid variable.
    """
    read = _IntegerReader(environment.env, problems)
    candidates = (numbers for launcher in _LAUNCHERS if (numbers := launcher(environment, read)) is not None)
    numbers = next(candidates, None) or _Numbers(0, local_rank=read.first("LOCAL_RANK") or 0)
    for injected in _INJECTED:  # also those that do not count here
        read.first(injected)
    world_size = numbers.world_size
    if world_size is not None and numbers.rank >= world_size:
        problems["rank"] = (
            f"rank {numbers.rank} of {world_size} processes is not possible; the number of processes is ignored"
        )
        world_size = None
    return ProcessInfo(
        rank=numbers.rank,
        world_size=world_size or numbers.rank + 1,
        local_rank=numbers.local_rank,
        attempt=read.first(*_ATTEMPTS) or 0,
        slice=_slice(environment, read),
        host_index=read.first(*_HOST_INDICES),
    )


def _slice(environment: ProcessEnvironment, read: _IntegerReader) -> int | None:
    group = environment.env.get("LWS_LEADER_ADDRESS", "").partition(".")[0].rpartition("-")[2]
    job = job_of_set(environment)
    candidates = (read.first("MLDIAG_SLICE", "MEGASCALE_SLICE_ID"), whole_number(group), job[1] if job else None)
    return next((number for number in candidates if number is not None), None)


def _variables(rank: str, *world_size: str, local_rank: str = "LOCAL_RANK", needs: str = "") -> _Launcher:
    """Return a launcher that numbers processes in these variables, if `needs` is set."""

    def numbers(environment: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
        if needs and not environment.env.get(needs):
            return None
        number = read.first(rank)
        return None if number is None else _Numbers(number, read.first(*world_size), read.first(local_rank) or 0)

    return numbers


def _jax_process(environment: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    if environment.jax is None:
        return None
    return _Numbers(environment.jax.rank, environment.jax.world_size, read.first("LOCAL_RANK", "SLURM_LOCALID") or 0)


def _torch_process(environment: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    """Return the number in a process group of at least two.

    A group of one, such as that of an inference server, does not number the processes of a run.
    """
    if environment.torch is None or environment.torch.world_size == 1:
        return None
    return _Numbers(
        environment.torch.rank, environment.torch.world_size, read.first("LOCAL_RANK", "SLURM_LOCALID") or 0
    )


def _process_in_pod(environment: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    """Return the number in `RANK` if there are more processes than pods.

    The injected number is then the same for all processes of this pod. The number of pods is rarely injected.
    """
    pod = read.first("MLDIAG_RANK")
    rank, world_size = (whole_number(environment.env.get(name)) for name in ("RANK", "WORLD_SIZE"))
    if pod is None or rank is None or world_size is None or rank >= world_size:
        return None
    pods = max(pod + 1, read.first("MLDIAG_WORLD_SIZE") or 0)
    return _Numbers(rank, world_size) if world_size > pods else None


def _injected_pod(_: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    """Return the number by the injected variables, which count pods.

    All pods are expected to run as many processes as this one.
    """
    pod = read.first("MLDIAG_RANK")
    if pod is None:
        return None
    here, pods = read.first("LOCAL_WORLD_SIZE") or 1, read.first("MLDIAG_WORLD_SIZE")
    local_rank = read.first("LOCAL_RANK") or 0
    return _Numbers(pod * here + local_rank, None if pods is None else pods * here, local_rank)


def _tpu_host(environment: ProcessEnvironment, read: _IntegerReader) -> _Numbers | None:
    worker = read.first("TPU_WORKER_ID")
    if worker is None:
        return None
    hosts = environment.env.get("TPU_WORKER_HOSTNAMES", "").count(",") + 1
    slices = read.first("MEGASCALE_NUM_SLICES") or 1
    rank = (read.first("MEGASCALE_SLICE_ID") or 0) * hosts + worker
    return _Numbers(rank, hosts * slices, read.first("LOCAL_RANK") or 0)


_Launcher: TypeAlias = "Callable[[ProcessEnvironment, _IntegerReader], _Numbers | None]"
_LAUNCHERS: tuple[_Launcher, ...] = (
    # the first one with a number counts
    _variables("RANK", "WORLD_SIZE", needs="LOCAL_RANK"),  # torchrun, DeepSpeed, Accelerate: they count processes
    _jax_process,
    _torch_process,  # after JAX: programs of JAX may have a group of torch beside it
    _variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", local_rank="OMPI_COMM_WORLD_LOCAL_RANK"),
    _process_in_pod,
    _injected_pod,
    _variables("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
    _variables("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", local_rank="SLURM_LOCALID"),
    _variables("RANK", "WORLD_SIZE"),
    _variables("NODE_RANK", "NNODES"),
    _variables("GROUP_RANK", "GROUP_WORLD_SIZE"),
    _tpu_host,
    _variables("LWS_WORKER_INDEX", "LWS_GROUP_SIZE"),
    _variables("JOB_COMPLETION_INDEX"),
)
_ATTEMPTS = ("MLDIAG_ATTEMPT", "JOBSET_RESTART_ATTEMPT", "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")
_INJECTED = ("MLDIAG_RANK", "MLDIAG_WORLD_SIZE", "MLDIAG_SLICE", "MLDIAG_HOST_INDEX", "MLDIAG_ATTEMPT")
_HOST_INDICES = ("MLDIAG_HOST_INDEX", "TPU_WORKER_ID", "SLURM_NODEID", "GROUP_RANK", "JOB_COMPLETION_INDEX")


def job_of_set(environment: ProcessEnvironment) -> tuple[str, int] | None:
    """Return the JobSet and the job index of a host.

    The host is `<set>-<replicated job>-<job>-<pod>`, its domain `<set>.<namespace>…`.
    """
    group = environment.domain.partition(".")[0]
    if not group or not environment.host.startswith(f"{group}-"):
        return None
    match = _JOB_OF_SET.fullmatch(environment.host.removeprefix(f"{group}-"))
    return (group, int(match["job"])) if match else None


def whole_number(text: str | None) -> int | None:
    """Return the whole number of at least 0 in a string, None if there is none."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text.strip()) else None
