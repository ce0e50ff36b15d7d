"""Which process this is, by each launcher's numbers and by any mixture of broken ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.identity.process import (
    JaxProcess,
    ProcessEnvironment,
    ProcessInfo,
    TorchProcess,
    job_of_set,
    process_info,
    whole_number,
)

COUNT = st.integers(min_value=0, max_value=9)
NAMES = st.sampled_from(
    [
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MLDIAG_RANK", "MLDIAG_WORLD_SIZE", "MLDIAG_SLICE"),
        *("SLURM_PROCID", "SLURM_NTASKS", "JAX_PROCESS_ID", "TPU_WORKER_ID", "MEGASCALE_SLICE_ID", "NODE_RANK"),
        *("JOB_COMPLETION_INDEX", "MLDIAG_ATTEMPT", "LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS", "TPU_WORKER_HOSTNAMES"),
    ]
)
TEXTS = st.one_of(
    COUNT.map(str), st.sampled_from(["", " ", "-1", "1.5", "one", "1e3", "9" * 30, "٣", "a-3.b.c"]), st.text()
)


def place_of(env: dict[str, str], **facts: object) -> tuple[ProcessInfo, dict[str, str]]:
    problems: dict[str, str] = {}
    return process_info(ProcessEnvironment(env, "host", **facts), problems), problems  # type: ignore[arg-type]


LAUNCHERS = {
    "alone": ({}, (0, 1, 0)),
    "torchrun": ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, (5, 8, 1)),
    "torchrun in an injected pod": (
        {"MLDIAG_RANK": "1", "MLDIAG_WORLD_SIZE": "2", "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"},
        (5, 8, 1),
    ),
    "injected": ({"MLDIAG_RANK": "3", "MLDIAG_WORLD_SIZE": "4", "JOB_COMPLETION_INDEX": "1"}, (3, 4, 0)),
    "injected, more processes than pods": ({"MLDIAG_RANK": "1", "RANK": "5", "WORLD_SIZE": "8"}, (5, 8, 0)),
    "injected with the number of pods, more processes": (
        {"MLDIAG_RANK": "0", "MLDIAG_WORLD_SIZE": "2", "RANK": "3", "WORLD_SIZE": "8"},
        (3, 8, 0),
    ),
    "injected, a world of each pod": ({"MLDIAG_RANK": "1", "RANK": "0", "WORLD_SIZE": "1"}, (1, 2, 0)),
    "injected with the number of pods, as many processes": (
        {"MLDIAG_RANK": "2", "MLDIAG_WORLD_SIZE": "4", "RANK": "0", "WORLD_SIZE": "4"},
        (2, 4, 0),
    ),
    "injected, a rank outside the world": ({"MLDIAG_RANK": "1", "RANK": "8", "WORLD_SIZE": "8"}, (1, 2, 0)),
    "injected, a rank without a world": ({"MLDIAG_RANK": "1", "RANK": "5"}, (1, 2, 0)),
    "injected, some processes in each": (
        {"MLDIAG_RANK": "1", "MLDIAG_WORLD_SIZE": "2", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"},
        (7, 8, 3),
    ),
    "Slurm": ({"SLURM_PROCID": "6", "SLURM_NTASKS": "8", "SLURM_LOCALID": "2"}, (6, 8, 2)),
    "Slurm's step": ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}, (0, 1, 0)),
    "JAX": ({"JAX_PROCESS_ID": "2", "JAX_NUM_PROCESSES": "4"}, (2, 4, 0)),
    "Open MPI": (
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
        (3, 4, 1),
    ),
    "by hand, some processes on each host": ({"LOCAL_RANK": "3"}, (0, 1, 3)),
    "TPU, some processes on each host": (
        {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b", "LOCAL_RANK": "2"},
        (1, 2, 2),
    ),
    "by hand": ({"RANK": "1", "WORLD_SIZE": "2"}, (1, 2, 0)),
    "TPU": ({"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b,c,d"}, (1, 4, 0)),
    "TPU slices": (
        {
            "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b", "MEGASCALE_SLICE_ID": "2", "MEGASCALE_NUM_SLICES": "3",
            "JOB_COMPLETION_INDEX": "1",
        },
        (5, 6, 0),
    ),
    "LeaderWorkerSet": ({"LWS_WORKER_INDEX": "1", "LWS_GROUP_SIZE": "4"}, (1, 4, 0)),
    "Indexed Job": ({"JOB_COMPLETION_INDEX": "7"}, (7, 8, 0)),
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_numbers_of_a_launcher_are_understood(launcher: str) -> None:
    env, expected = LAUNCHERS[launcher]
    place, problems = place_of(env)
    assert ((place.rank, place.world_size, place.local_rank), problems) == (expected, {})


def test_values_of_initialised_jax_win() -> None:
    place, _ = place_of({"MLDIAG_RANK": "0", "SLURM_PROCID": "0", "LOCAL_RANK": ""}, jax=JaxProcess(3, 4, "host:1"))
    assert (place.rank, place.world_size) == (3, 4)


INJECTED = {"MLDIAG_RANK": "0", "MLDIAG_WORLD_SIZE": "1"}


def test_values_of_initialised_torch_win_over_those_of_the_pod() -> None:
    places = [place_of(INJECTED, torch=TorchProcess(rank, 4))[0] for rank in range(4)]
    assert [(place.rank, place.world_size) for place in places] == [(rank, 4) for rank in range(4)]
    assert [place.leads for place in places] == [True, False, False, False]


def test_a_group_of_torch_with_one_process_does_not_number_it() -> None:
    place, _ = place_of({"MLDIAG_RANK": "2", "MLDIAG_WORLD_SIZE": "4"}, torch=TorchProcess(0, 1))
    assert (place.rank, place.world_size) == (2, 4)


def test_torchrun_and_jax_count_before_a_group_of_torch() -> None:
    place, _ = place_of({"RANK": "1", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, torch=TorchProcess(0, 2))
    assert (place.rank, place.world_size, place.local_rank) == (1, 8, 1)
    place, _ = place_of({}, torch=TorchProcess(0, 2), jax=JaxProcess(3, 4, "host:1"))
    assert (place.rank, place.world_size) == (3, 4)


@given(st.dictionaries(NAMES, TEXTS))
def test_any_environment_gives_a_valid_rank(env: dict[str, str]) -> None:
    place, problems = place_of(env)
    assert 0 <= place.rank < place.world_size
    assert place.local_rank >= 0
    assert place.attempt >= 0
    assert all(env[key.removeprefix("env-")] for key in problems if key.startswith("env-"))


@given(st.dictionaries(NAMES, COUNT.map(str)))
def test_valid_numbers_are_not_reported(env: dict[str, str]) -> None:
    _, problems = place_of(env)
    assert set(problems) <= {"rank"}


@given(slices=st.integers(1, 4), hosts=st.integers(1, 4))
def test_each_tpu_host_has_a_rank_of_its_own_and_one_leads(slices: int, hosts: int) -> None:
    places = [
        place_of(
            {
                "TPU_WORKER_ID": str(host),
                "TPU_WORKER_HOSTNAMES": ",".join(f"h{n}" for n in range(hosts)),
                "MEGASCALE_SLICE_ID": str(number),
                "MEGASCALE_NUM_SLICES": str(slices),
            }
        )[0]
        for number in range(slices)
        for host in range(hosts)
    ]
    assert [place.rank for place in places] == list(range(slices * hosts))
    assert [place.leads for place in places] == [True] + [False] * (slices * hosts - 1)


def test_an_invalid_number_is_reported_and_the_next_source_used() -> None:
    place, problems = place_of({"MLDIAG_RANK": "first", "JAX_PROCESS_ID": "1"})
    assert place.rank == 1
    assert "MLDIAG_RANK='first'" in problems["env-MLDIAG_RANK"]


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "SLICE", "HOST_INDEX", "ATTEMPT"])
def test_an_invalid_injected_number_is_reported_also_if_it_does_not_count(name: str) -> None:
    _, problems = place_of({f"MLDIAG_{name}": "x", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"})
    assert list(problems) == [f"env-MLDIAG_{name}"]


def test_a_rank_outside_the_world_is_reported_and_the_world_extended() -> None:
    place, problems = place_of({"RANK": "8", "WORLD_SIZE": "8"})
    assert (place.rank, place.world_size) == (8, 9)
    assert "rank" in problems


@pytest.mark.parametrize(
    ("env", "attempt"),
    [({"MLDIAG_ATTEMPT": "2", "TORCHELASTIC_RESTART_COUNT": "5"}, 2), ({"SLURM_RESTART_COUNT": "1"}, 1), ({}, 0)],
)
def test_restarts_are_counted_by_who_does_them(env: dict[str, str], attempt: int) -> None:
    assert place_of(env)[0].attempt == attempt


def test_only_one_group_of_a_leader_worker_set_leads() -> None:
    groups = [place_of({"LWS_WORKER_INDEX": "0", "LWS_LEADER_ADDRESS": f"set-{n}.set.ml"})[0] for n in (0, 1)]
    assert [(group.slice, group.leads) for group in groups] == [(0, True), (1, False)]


@pytest.mark.parametrize(
    ("host", "domain", "job"),
    [
        ("trainer-workers-1-3", "trainer.ml.svc.cluster.local", ("trainer", 1)),
        ("my-set-a-b-0-0", "my-set.ml.svc.cluster.local", ("my-set", 0)),
        ("train-2-0", "train.ml.svc.cluster.local", None),
        ("trainer-workers-1-3", "", None),
        ("other-workers-1-3", "trainer.ml", None),
        ("trainer", "trainer.ml", None),
    ],
)
def test_a_host_of_a_jobset_is_known_by_its_domain(host: str, domain: str, job: tuple[str, int] | None) -> None:
    assert job_of_set(ProcessEnvironment({}, host, domain=domain)) == job


@given(st.integers(min_value=0, max_value=999_999_999))
def test_whole_numbers_are_read(number: int) -> None:
    assert whole_number(f" {number}\n") == number


@given(st.text())
def test_other_strings_are_not_whole_numbers(text: str) -> None:
    assert whole_number(text) is None or text.strip().isascii()
