"""One run id for all processes of a run, from shared values only."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.identity.process import JaxProcess, ProcessEnvironment, TorchProcess
from mldiagnostics.identity.resolve import ResolvedIdentity, locate

CHECK = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"
"""Of train-cluster_ml_JobSet_trainer_20260424-030405, as Google's webhook computes it."""

IDENTIFIER = {
    "metadata.name": "trainer",
    "metadata.kind": "JobSet",
    "clustername": "projects/p/locations/us-central1/clusters/train-cluster",
    "namespace": "ml",
}
METADATA = {"creation-timestamp": "2026-04-24T03:04:05Z", "associated-labels": "app=trainer, team = infra"}
SLURM = {"SLURM_CLUSTER_NAME": "hpc", "SLURM_JOB_ID": "77", "SLURM_JOB_START_TIME": "1777000000"}


def google(identifier: Any = IDENTIFIER, metadata: Any = METADATA) -> dict[str, str]:
    return {"GKE_DIAGON_IDENTIFIER": json.dumps(identifier), "GKE_DIAGON_METADATA": json.dumps(metadata)}


def resolved(
    env: dict[str, str], *, name: str = "job", workload_id: str | None = None, cluster: str = "", **facts: Any
) -> ResolvedIdentity:
    environment = ProcessEnvironment(env, **{"host": "host", **facts})
    return locate(environment, name=name, workload_id=workload_id, cluster=cluster)


def source(where: ResolvedIdentity) -> str | None:
    return where.identity.source if where.identity else None


def test_googles_variables_give_googles_id() -> None:
    where = resolved(google())
    assert where.identity
    assert (where.identity.run_id, where.identity.source, where.namespace) == (CHECK, "injected", "ml")
    assert where.identity.workload["kind"] == "JobSet"
    assert where.identity.workload["labels"] == {"app": "trainer", "team": "infra"}
    assert where.problems == {}


@pytest.mark.parametrize(
    "text",
    [
        *("2026-04-24T03:04:05.5Z", "2026-04-24T03:04:05+00:00", "2026-04-24T03:04:05", "2026-04-24T05:04:05+02:00"),
        *("2026-04-24T03:04:05.123456789Z", "2026-04-24t03:04:05z", "2026-04-24 03:04:05Z"),
    ],
)
def test_the_time_of_creation_is_read_however_it_is_written(text: str) -> None:
    where = resolved(google(metadata={"creation-timestamp": text}))
    assert where.identity
    assert where.identity.run_id == CHECK


def test_older_metadata_is_read() -> None:
    where = resolved(google(metadata={"timestamp": "2026-04-24T03:04:05Z"}))
    assert where.identity
    assert where.identity.run_id == CHECK


OURS = "ab" * 32
ORDER: list[tuple[str, dict[str, str]]] = [
    ("injected", {"MLDIAG_RUN_ID": OURS}),
    ("injected", google()),
    ("slurm", SLURM),
    ("workload-id", {"RUN_WORKLOAD_ID": "mine"}),
    ("launcher", {"TORCHELASTIC_RUN_ID": "7f"}),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_source_that_there_is_decides(first: int) -> None:
    expected, env = ORDER[first]
    alone = resolved(env)
    together = resolved({name: value for _, later in ORDER[first:] for name, value in later.items()})
    assert source(alone) == expected
    assert alone.identity == together.identity


MALFORMED = {
    "GKE_DIAGON_IDENTIFIER": ["{", "[]", "7", '{"metadata.name": "x"}', json.dumps({**IDENTIFIER, "namespace": ""})],
    "GKE_DIAGON_METADATA": [
        "null", "x", "[" * 100_000, '{"creation-timestamp": "yesterday"}', '{"creation-timestamp": 5}',
        '{"creation-timestamp": "2026-13-40T99:99:99Z"}',
    ],
    "MLDIAG_WORKLOAD": ["{", "[]"],
    "MLDIAG_RUN_ID": ["../../etc", "A" * 64, "x" * 200, "a b"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MALFORMED.items() for value in values])
def test_a_malformed_variable_is_reported_and_the_next_source_used(name: str, value: str) -> None:
    where = resolved({**google(), **SLURM, name: value})
    assert [key for key in where.problems if "GKE_DIAGON" in key or name in key], where
    assert source(where) == ("slurm" if "GKE" in name else "injected")


def test_our_variables_describe_the_workload() -> None:
    where = resolved({"MLDIAG_RUN_ID": OURS, "MLDIAG_WORKLOAD": '{"kind": "JobSet", "namespace": "ml"}'})
    assert where.identity
    assert (where.identity.run_id, dict(where.identity.workload)) == (OURS, {"kind": "JobSet", "namespace": "ml"})
    assert where.namespace == "ml"


@pytest.mark.parametrize(
    "env", [SLURM, SLURM | {"SLURM_CLUSTER_NAME": ""}, google(identifier=IDENTIFIER | {"clustername": ""})]
)
def test_a_given_cluster_is_the_cluster_of_the_id(env: dict[str, str]) -> None:
    where = resolved(env, cluster="given")
    assert where.identity
    assert where.identity.workload["cluster"] == "given"
    without = resolved(env).identity
    assert without is None or without.run_id != where.identity.run_id


@pytest.mark.parametrize("env", [google(), {"RUN_WORKLOAD_ID": "a b"}, {"MASTER_ADDR": "a", "MASTER_PORT": "1"}])
def test_a_given_cluster_changes_no_other_id(env: dict[str, str]) -> None:
    assert resolved(env, cluster="given") == resolved(env)


@pytest.mark.parametrize(("workload_id", "is_kept"), [("ab" * 32, True), ("job-7", True), ("Job 7", False)])
def test_the_workload_of_googles_sdk_comes_after_our_own(workload_id: str, *, is_kept: bool) -> None:
    where = resolved({"DIAGON_WORKLOAD_ID": workload_id})
    assert where.identity
    assert (where.identity.source, where.identity.run_id == workload_id) == ("workload-id", is_kept)
    chosen = resolved({"DIAGON_WORKLOAD_ID": workload_id, "RUN_WORKLOAD_ID": "mine"}).identity
    assert chosen
    assert chosen.run_id == "mine"


def test_slurms_id_is_googles() -> None:
    moment = datetime.fromtimestamp(1777000000, tz=timezone.utc).strftime("%Y%m%d-%H%M%S")
    where = resolved(SLURM)
    assert where.identity
    assert where.identity.run_id == hashlib.sha256(f"hpc_77_{moment}".encode()).hexdigest()


@pytest.mark.parametrize("chosen", ["a", "run-7", "2026.04_x", "a" * 63])
def test_a_chosen_id_is_taken_as_it_is(chosen: str) -> None:
    for where in (resolved({"RUN_WORKLOAD_ID": chosen}), resolved({"RUN_WORKLOAD_ID": "other"}, workload_id=chosen)):
        assert where.identity
        assert where.identity.run_id == chosen


@given(st.text(min_size=1, max_size=80), st.sampled_from(["", "ml", "other"]))
def test_any_chosen_id_names_a_directory(chosen: str, namespace: str) -> None:
    where = resolved({}, workload_id=chosen, namespace=namespace)
    assert where.identity
    run = where.identity.run_id
    assert run not in {".", ".."}
    assert set(run) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert len(run) <= 64
    if run != chosen:
        other = resolved({}, workload_id=chosen, namespace="third")
        assert other.identity
        assert other.identity.run_id != run


SHARED = {
    "torchrun": {"TORCHELASTIC_RUN_ID": "a1"},
    "torchrun without an id, two hosts": {
        "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h0", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2",
    },
    "JAX": {"JAX_COORDINATOR_ADDRESS": "h0:1234"},
    "slices": {"MEGASCALE_COORDINATOR_ADDRESS": "h0:8080"},
    "LeaderWorkerSet": {"LWS_LEADER_ADDRESS": "set-0.set.ml"},
    "by hand": {"MASTER_ADDR": "h0", "MASTER_PORT": "29500"},
    "TPU": {"TPU_WORKER_HOSTNAMES": "h0,h1"},
    "MPI": {"PMIX_NAMESPACE": "prterun-h0-1@1"},
}  # fmt: skip


def numbers(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank % 2), "HOSTNAME": f"h{rank // 2}"}


@pytest.mark.parametrize("launcher", SHARED)
def test_all_processes_of_a_launcher_find_one_id_and_other_runs_another(launcher: str) -> None:
    def of(rank: int, name: str = "job", **changed: str) -> ResolvedIdentity:
        env = {**numbers(rank), **SHARED[launcher], **changed}
        return resolved(env, name=name, host=f"h{rank // 2}", launcher=f"{rank}")

    assert {source(of(rank)) for rank in range(4)} == {"launcher"}
    ids = {where.identity and where.identity.run_id for rank in range(4) if (where := of(rank))}
    assert len(ids) == 1
    assert [of(rank).process.leads for rank in range(4)] == [True, False, False, False]
    other_name, other_launch = of(0, name="other"), of(0, **{next(iter(SHARED[launcher])): "x.y,z"})
    assert {where.identity and where.identity.run_id for where in (other_name, other_launch)}.isdisjoint(ids)


def test_torchrun_on_one_host_is_identified_by_its_parent() -> None:
    env = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "0", "RANK": "0"}
    launches = [resolved({**env, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}, launcher=pid) for pid in "112"]
    first, sibling, later = (where.identity for where in launches)
    assert first == sibling != later


def test_initialised_jax_provides_the_coordinator() -> None:
    processes = [resolved({}, jax=JaxProcess(rank, 2, "h0:1234"), host=f"h{rank}") for rank in range(2)]
    assert processes[0].identity == processes[1].identity
    assert source(processes[0]) == "launcher"


def test_processes_of_initialised_torch_share_the_address_of_their_rendezvous() -> None:
    env = {"MASTER_ADDR": "h0", "MASTER_PORT": "29500"}
    processes = [resolved(env, torch=TorchProcess(rank, 2), host=f"h{rank}") for rank in range(2)]
    assert [source(process) for process in processes] == ["launcher", "launcher"]
    assert processes[0].identity == processes[1].identity
    assert resolved(env, torch=TorchProcess(0, 1)).identity is None
    by_hand = {**env, "RANK": "1", "WORLD_SIZE": "4"}
    assert resolved(by_hand, torch=TorchProcess(0, 1)).identity == resolved(by_hand).identity


def test_pods_of_a_jobset_that_were_not_injected_find_one_id() -> None:
    pods = [
        resolved(
            {"JOB_COMPLETION_INDEX": str(index)},
            host=f"trainer-{role}-{job}-{index}",
            domain="trainer.ml.svc.cluster.local",
            namespace="ml",
        )
        for role, job, index in [("workers", 0, 0), ("workers", 0, 1), ("workers", 1, 0), ("driver", 0, 0)]
    ]
    assert {source(pod) for pod in pods} == {"launcher"}
    assert len({pod.identity.run_id for pod in pods if pod.identity}) == 1
    assert [pod.process.leads for pod in pods[:3]] == [True, False, False]
    assert {pod.namespace for pod in pods} == {"ml"}


def test_pods_of_an_indexed_job_that_were_not_injected_find_one_id() -> None:
    def pod(job: str, index: int, namespace: str = "ml") -> str:
        where = resolved({"JOB_COMPLETION_INDEX": str(index)}, host=f"{job}-{index}", namespace=namespace)
        assert where.identity
        return where.identity.run_id

    assert pod("train-2", 0) == pod("train-2", 1)
    assert len({pod("train-2", 0), pod("train-1", 0), pod("train", 2), pod("train-2", 0, "other")}) == 4


def test_a_process_that_is_alone_takes_a_fresh_id() -> None:
    assert resolved({}).identity is None
    assert resolved({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}).identity is None
    assert resolved({"TPU_WORKER_HOSTNAMES": "localhost"}).identity is None


def test_processes_that_share_nothing_share_the_name_and_are_warned() -> None:
    processes = [resolved({"RANK": str(rank), "WORLD_SIZE": "2"}, host=f"h{rank}") for rank in range(2)]
    assert [source(process) for process in processes] == ["name", "name"]
    assert processes[0].identity == processes[1].identity
    assert all("run_workload_id" in process.problems["identity"] for process in processes)
    other = resolved({"RANK": "0", "WORLD_SIZE": "2"}, name="other").identity
    assert other != processes[0].identity


@given(st.integers(min_value=86_400, max_value=4_000_000_000), st.integers(-14, 14))
def test_the_id_does_not_depend_on_the_time_zone(seconds: int, hours: int) -> None:
    created = datetime.fromtimestamp(seconds, tz=timezone.utc)
    zone = timezone(timedelta(hours=hours))
    one, two = (
        resolved(google(metadata={"creation-timestamp": moment.isoformat()})).identity
        for moment in (created, created.astimezone(zone))
    )
    assert one
    assert two
    assert one.run_id == two.run_id


def test_the_pod_names_host_and_namespace() -> None:
    where = resolved({"MLDIAG_POD_NAME": "trainer-0", "MLDIAG_NAMESPACE": "ml"}, namespace="other")
    assert (where.host, where.namespace) == ("trainer-0", "ml")
