"""Objects of a server of XProf: sizes, places of profiles, and owners."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import WORKLOADS
from mldiagnostics_api.workloads.matching import MatchReason, match
from mldiagnostics_cli.xprof.manifests import XprofSpec, job_of, objects, resources_of


def spec(**changes: Any) -> XprofSpec:
    fields = {"name": "a", "log_directory": "gs://bucket/a", "image": "xprof", "resources": resources_of(None, None)}
    return XprofSpec(**{**fields, **changes})


def arguments(spec: XprofSpec) -> list[str]:
    return job_of(created(spec), ())["spec"]["template"]["spec"]["containers"][0]["args"]


def created(spec: XprofSpec) -> dict[str, Any]:
    """Return the CronJob as the API server has it."""
    cron_job = objects(spec)[0]
    return {**cron_job, "metadata": {**cron_job["metadata"], "uid": "u"}}


@pytest.mark.parametrize(
    ("machine_type", "memory", "resources"),
    [
        (None, None, {"cpu": "500m", "memory": "4Gi"}),
        (None, "8Gi", {"cpu": "500m", "memory": "8Gi"}),
        ("c4-highmem-8", None, {"cpu": "6", "memory": "48Gi"}),
        ("e2-standard-2", "1Gi", {"cpu": "1.5", "memory": "1Gi"}),
    ],
)
def test_a_pod_is_as_large_as_the_machine_without_the_part_of_the_node(
    machine_type: str | None, memory: str | None, resources: dict[str, str]
) -> None:
    assert resources_of(machine_type, memory) == resources


def test_a_machine_that_is_not_known_is_rejected() -> None:
    with pytest.raises(
        ConfigurationError, match="--machine-type n1-huge: not the type of a machine; pass a type such as"
    ):
        resources_of("n1-huge", None)


def test_a_bucket_is_read_as_it_is_and_a_claim_below_its_mount() -> None:
    assert arguments(spec()) == ["8791", "7200.0", "xprof", "--logdir", "gs://bucket/a"]
    assert arguments(spec(log_directory="volume:///runs/a", claim="c"))[-1] == "/logs/runs/a"
    assert arguments(spec(log_directory="volume:///", claim="c", idle_s=0))[1:] == ["0", "xprof", "--logdir", "/logs"]


@given(st.sets(st.integers(1, 9).map("mldiag-xprof-a-{}".format)))
def test_a_start_is_a_job_of_a_free_name_that_no_controller_of_ours_records(taken: set[str]) -> None:
    cron_job = created(spec())
    job = job_of(cron_job, taken)
    assert job["metadata"]["name"] not in taken
    assert job == {**job_of(cron_job, ()), "metadata": job["metadata"]}
    assert cron_job["spec"]["suspend"] is True
    assert job["metadata"]["ownerReferences"][0]["uid"] == "u"
    pod_labels = job["spec"]["template"]["metadata"]["labels"]
    opted_in = match(
        next(each for each in WORKLOADS if each.kind == "Job"),
        labels=job["metadata"]["labels"],
        pod_labels=pod_labels,
        namespace="ml",
        namespace_labels={OPT_IN_LABEL: "true"},
    )
    assert opted_in.reason is MatchReason.WORKLOAD_OPTED_OUT
    assert objects(spec())[1]["spec"]["selector"].items() <= pod_labels.items()


def test_a_name_that_kubernetes_rejects_is_named_before() -> None:
    assert len(objects(spec(name=39 * "a"))[0]["metadata"]["name"]) == 52
    with pytest.raises(ConfigurationError, match=r"a+: is longer than 39 characters; choose a shorter name"):
        objects(spec(name=40 * "a"))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("/runs/a", "/runs/a: a pod cannot read it"),
        ("volume:///runs", "lies in a claim; pass its name with --claim"),
        ("volume:///../etc", "a pod cannot read it"),
    ],
)
def test_a_place_that_a_pod_cannot_read_is_rejected(place: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        objects(spec(log_directory=place))
