"""Four processes that never talk to each other come to one run, in and outside of Kubernetes."""

from __future__ import annotations

import contextlib
import shutil
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import find_run, ranks_of, read_records
from support.programs import environments

if TYPE_CHECKING:
    from support.programs.processes import Programs

PROCESSES = 4
TRAIN = """
import sys
from mldiagnostics import machinelearning_run, metrics
run = machinelearning_run("job", log_system_metrics=False)
metrics.record("rank", run.origin.rank)
"""
SLURM = {
    "SLURM_CLUSTER_NAME": "hpc",
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_START_TIME": "1777000000",
    "SLURM_NODELIST": "n[0-1]",
    "SLURM_NTASKS": "4",
}
COORDINATED = {"MASTER_ADDR": "h0", "MASTER_PORT": "29500", "WORLD_SIZE": "4"}


def variables(launcher: str) -> list[dict[str, str]]:
    match launcher:
        case "slurm":
            return [{**SLURM, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank % 2)} for rank in range(PROCESSES)]
        case "by hand":
            return [{**COORDINATED, "RANK": str(rank)} for rank in range(PROCESSES)]
        case "workload id":
            return [{"RUN_WORKLOAD_ID": "shared", "NODE_RANK": str(rank), "NNODES": "4"} for rank in range(PROCESSES)]
        case _:
            injected = {"MLDIAG_RUN_ID": "ab" * 32, "MLDIAG_WORLD_SIZE": "4"}
            return [{**injected, "MLDIAG_RANK": str(rank)} for rank in range(PROCESSES)]


def assert_one_run_of_four(programs: Programs) -> None:
    row = programs.the_run()
    assert (row.name, row.phase, row.world_size) == ("job", "Completed", PROCESSES)
    ranks = ranks_of(programs.storage, row.run_id)
    assert [(rank.rank, rank.phase) for rank in ranks] == [(rank, "Completed") for rank in range(PROCESSES)]
    metrics = read_records(programs.storage, row.run_id, kinds={"metric"})
    assert sorted((record.rank, record.value) for record in metrics) == [(rank, rank) for rank in range(PROCESSES)]


def run_together(programs: Programs, source: str, envs: list[dict[str, str]]) -> list[int]:
    with contextlib.ExitStack() as running:
        children = [running.enter_context(programs.started(source, env=env)) for env in envs]
        return [child.end().code for child in children]


@pytest.mark.parametrize("launcher", ["slurm", "by hand", "workload id", "injected"])
def test_processes_with_a_launchers_variables(programs: Programs, launcher: str) -> None:
    assert run_together(programs, TRAIN, variables(launcher)) == [0] * PROCESSES
    assert_one_run_of_four(programs)


def test_a_worker_that_fails_is_seen_although_the_leader_is_well(programs: Programs) -> None:
    source = f"{TRAIN}\nif run.origin.rank == 2:\n    raise ValueError('no data')\n"
    assert run_together(programs, source, variables("by hand")) == [0, 0, 1, 0]
    row = programs.the_run()
    assert row == find_run(programs.storage, row.run_id[:12])
    assert (row.phase, row.reason) == ("Failed", "WorkerUncaughtException")
    assert "rank 2" in row.message
    assert "no data" in row.message


JAX = """
import sys, jax
rank, port, when = int(sys.argv[1]), sys.argv[2], sys.argv[3]
from mldiagnostics import machinelearning_run, metrics
initialise = lambda: jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=4, process_id=rank)
if when == "before":
    initialise()
run = machinelearning_run("job", log_system_metrics=False)
from jax._src import xla_bridge
assert not xla_bridge._backends, "the backend was initialised"
if when == "after":
    initialise()
assert jax.process_index() == run.origin.rank == rank and jax.process_count() == 4
metrics.record("rank", run.origin.rank)
run.close()
jax.distributed.shutdown()
"""


@pytest.mark.peers
@pytest.mark.parametrize("when", ["before", "after"])
def test_processes_of_jax(programs: Programs, when: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    known = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}", "JAX_NUM_PROCESSES": "4", "JAX_PLATFORMS": "cpu"}
    envs = [
        {**known, "JAX_PROCESS_ID": str(rank)} if when == "after" else {"JAX_PLATFORMS": "cpu"} for rank in range(4)
    ]
    with contextlib.ExitStack() as running:
        children = [
            running.enter_context(programs.started(JAX, str(rank), port, when, env=env))
            for rank, env in enumerate(envs)
        ]
        ends = [child.end() for child in children]
    assert [end.code for end in ends] == [0] * PROCESSES, ends[0].err
    assert_one_run_of_four(programs)


@pytest.mark.root
@pytest.mark.skipif(sys.platform != "linux", reason="host names of one's own are Linux's")
def test_pods_of_a_job_that_were_not_injected(programs: Programs) -> None:
    unshare = shutil.which("unshare")
    assert unshare is not None
    source = f"import socket, sys\nsocket.sethostname('train-' + sys.argv[1])\n{TRAIN}"
    own = replace(programs, around=(unshare, "--uts", "--"))
    with contextlib.ExitStack() as running:
        children = [
            running.enter_context(own.started(source, str(index), env={"JOB_COMPLETION_INDEX": str(index)}))
            for index in range(PROCESSES)
        ]
        ends = [child.end() for child in children]
    assert [end.code for end in ends] == [0] * PROCESSES, ends[0].err
    row = programs.the_run()
    assert (row.phase, row.host) == ("Completed", "train-0")
    assert len(ranks_of(programs.storage, row.run_id)) == PROCESSES


TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node=4"]


@pytest.mark.peers
@pytest.mark.parametrize("rendezvous", [[], ["--standalone"], ["--rdzv-id=sweep-7", "--rdzv-backend=c10d"]])
def test_processes_of_torchrun(programs: Programs, rendezvous: list[str]) -> None:
    try:
        python = str(environments.interpreter("torch"))
    except environments.Unavailable as error:
        pytest.skip(f"no environment torch: {error}")
    ended = replace(programs, python=python, options=(*TORCHRUN, *rendezvous)).run(TRAIN, env={"OMP_NUM_THREADS": "1"})
    assert ended.code == 0, ended.err
    assert_one_run_of_four(programs)
    assert programs.the_run().document["identity"]["source"] == "launcher"
