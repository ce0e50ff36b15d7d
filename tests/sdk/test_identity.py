"""One workload has one run id, in all components and time zones."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.identity import cluster_short_name, fallback_cluster_name, run_id, run_label_value
from support.cluster import strategies


@dataclasses.dataclass(frozen=True)
class Workload:
    cluster: str
    namespace: str
    kind: str
    name: str
    created: dt.datetime

    def run_id(self, **changes: object) -> str:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return run_id(**(values | changes))


def workloads() -> st.SearchStrategy[Workload]:
    return st.builds(
        Workload,
        cluster=st.one_of(strategies.dns_labels(), st.text("ab_", min_size=1)),
        namespace=strategies.dns_labels(),
        kind=strategies.kinds(),
        name=strategies.dns_subdomains(),
        created=strategies.instants(),
    )


UTC = dt.timezone.utc
TRAINER = Workload("train-cluster", "ml", "JobSet", "trainer", dt.datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC))


def test_the_check_value_of_the_peer_formula() -> None:
    assert TRAINER.run_id() == "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"


@given(workloads())
def test_a_run_id_is_64_lower_case_hex_digits_and_its_label_value_a_legal_prefix(workload: Workload) -> None:
    run = workload.run_id()
    label = run_label_value(run)
    assert re.fullmatch("[0-9a-f]{64}", run)
    assert run.startswith(label)
    assert re.fullmatch("[0-9a-f]{32}", label)


@given(workloads(), strategies.instants())
def test_the_time_zone_of_the_creation_time_does_not_matter(workload: Workload, other: dt.datetime) -> None:
    assert workload.run_id(created=workload.created.astimezone(other.tzinfo)) == workload.run_id()


@given(workloads(), st.integers(0, 999_999))
def test_fractions_of_the_creation_second_do_not_matter(workload: Workload, microsecond: int) -> None:
    assert workload.run_id(created=workload.created.replace(microsecond=microsecond)) == workload.run_id()


@given(workloads(), st.from_regex(r"projects/[a-z0-9-]+/locations/[a-z0-9-]+/clusters/", fullmatch=True))
def test_a_full_cluster_name_counts_as_its_last_part(workload: Workload, path: str) -> None:
    assert workload.run_id(cluster=path + workload.cluster) == workload.run_id()


@given(workloads(), workloads())
def test_workloads_that_differ_in_anything_have_different_runs(one: Workload, other: Workload) -> None:
    def seconds(workload: Workload) -> Workload:
        return dataclasses.replace(workload, created=workload.created.astimezone(UTC).replace(microsecond=0))

    assume(seconds(one) != seconds(other))
    assert one.run_id() != other.run_id()


@given(workloads(), st.sampled_from(["cluster", "namespace", "kind", "name", "created"]), st.data())
def test_one_changed_part_changes_the_run(workload: Workload, part: str, data: st.DataObject) -> None:
    if part == "created":
        changed: object = workload.created.astimezone(UTC) + dt.timedelta(seconds=data.draw(st.integers(1, 10**8)))
    else:
        changed = getattr(workload, part) + data.draw(st.sampled_from("abc019"))
    assert workload.run_id(**{part: changed}) != workload.run_id()


@pytest.mark.parametrize("part", ["cluster", "namespace", "kind", "name"])
def test_an_empty_part_is_refused_by_name(part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the {part} of .* is empty"):
        TRAINER.run_id(**{part: ""})


def test_a_cluster_whose_last_part_is_empty_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the cluster of"):
        TRAINER.run_id(cluster="projects/p/locations/l/clusters/")


def test_a_creation_time_without_time_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no time zone"):
        TRAINER.run_id(created=TRAINER.created.replace(tzinfo=None))


@given(strategies.dns_labels())
def test_a_short_cluster_name_stays(name: str) -> None:
    assert cluster_short_name(name) == name


@given(strategies.uids())
def test_an_unnamed_cluster_is_named_after_kube_system(uid: str) -> None:
    assert fallback_cluster_name(uid) == f"k8s-{uid[:8]}"
    assert cluster_short_name(fallback_cluster_name(uid)) == fallback_cluster_name(uid)


@pytest.mark.parametrize("uid", ["", "kube-system", "1f0e9a3", "G" * 36])
def test_an_invalid_uid_is_rejected(uid: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the uid"):
        fallback_cluster_name(uid)


@pytest.mark.parametrize("run", ["", "abc", "A" * 64, "a" * 63, "a" * 65, "my-own-run"])
def test_an_invalid_run_id_is_rejected_as_label_value(run: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a run id"):
        run_label_value(run)
