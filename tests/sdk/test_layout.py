"""Names of files stay inside their directory, keep their alphabet, and never become one silently."""

from __future__ import annotations

import posixpath
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mldiagnostics import layout
from mldiagnostics.errors import ConfigurationError
from support.cluster import strategies

RANKS = st.none() | st.integers(0, 300)
TEXTS = st.text() | st.text("ab._-/ \0é", max_size=8) | st.text("a", min_size=195, max_size=260)
PODS = strategies.dns_subdomains() | TEXTS | st.text("ab_01", max_size=6) | st.text("a", min_size=195, max_size=253)
OBJECTS = st.tuples(strategies.dns_subdomains(), strategies.uids())


def is_file_name(name: str, max_bytes: int = 200) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", name)) and name not in {".", ".."} and len(name) <= max_bytes


@given(TEXTS)
@example("")
@example("..")
@example("../../etc/passwd")
def test_any_text_becomes_a_stable_file_name(text: str) -> None:
    name = layout.sanitize(text)
    assert is_file_name(name)
    assert layout.sanitize(name) == name


@given(TEXTS, TEXTS)
@example("a b", "a-b")
@example("a/b", "a b")
@example("x" * 201, "x" * 202)
def test_two_texts_share_a_name_only_if_one_is_that_name(one: str, other: str) -> None:
    assume(one != other)
    assert layout.sanitize(one) != layout.sanitize(other) or layout.sanitize(one) in {one, other}


@given(PODS, RANKS)
def test_a_stem_is_a_file_name(pod: str, rank: int | None) -> None:
    assert is_file_name(layout.file_stem(pod, rank))


@given(st.tuples(PODS, RANKS), st.tuples(PODS, RANKS))
@example(("a_1", None), ("a", 1))
@example(("a" * 199, 1), ("a" * 199, 11))
@example(("a" * 250, None), ("a" * 251, None))
@example(("a" * 250, 1), ("a" * 250, 2))
def test_two_hosts_never_share_a_stem(one: tuple[str, int | None], other: tuple[str, int | None]) -> None:
    assume(one != other)
    assert layout.file_stem(*one) != layout.file_stem(*other)


@given(strategies.dns_subdomains(), st.integers(0, 99))
def test_a_stem_reads_as_the_pod_and_its_rank(pod: str, rank: int) -> None:
    assume(len(pod) <= 197)
    assert layout.file_stem(pod) == pod
    assert layout.file_stem(pod, rank) == f"{pod}_{rank}"


@given(strategies.dns_subdomains(), strategies.uids(), st.none() | TEXTS)
def test_a_session_is_a_file_name_with_room_for_a_retry(name: str, uid: str, requested: str | None) -> None:
    session = layout.session_id(name=name, uid=uid, requested=requested)
    assert is_file_name(session)
    assert is_file_name(layout.retry_session(session, 99))


def test_a_session_is_named_after_its_object_or_as_requested() -> None:
    uid = "1f0e9a3c-5d2b-4a64-9c1e-0b6a5f8d7e21"
    assert layout.session_id(name="cap", uid=uid) == "cap-1f0e9a3c"
    assert layout.session_id(name="cap", uid=uid, requested="step-1000") == "step-1000"
    assert layout.retry_session("cap-1f0e9a3c", 1) == "cap-1f0e9a3c"
    assert layout.retry_session("cap-1f0e9a3c", 2) == "cap-1f0e9a3c-2"


@given(OBJECTS, OBJECTS)
def test_two_objects_never_share_a_session(one: tuple[str, str], other: tuple[str, str]) -> None:
    assume((one[0], one[1][:8]) != (other[0], other[1][:8]))
    assert layout.session_id(name=one[0], uid=one[1]) != layout.session_id(name=other[0], uid=other[1])


@given(OBJECTS, OBJECTS, st.integers(2, 99))
def test_a_retry_is_never_the_own_session_of_an_object(
    one: tuple[str, str], other: tuple[str, str], attempt: int
) -> None:
    retry = layout.retry_session(layout.session_id(name=one[0], uid=one[1]), attempt)
    assert retry != layout.session_id(name=other[0], uid=other[1])


@given(TEXTS, st.integers(1, 99), st.integers(1, 99))
def test_every_attempt_has_a_session_of_its_own(requested: str, one: int, other: int) -> None:
    session = layout.session_id(name="x", uid="12345678-", requested=requested)
    assert (layout.retry_session(session, one) == layout.retry_session(session, other)) == (one == other)


def test_attempts_count_from_one() -> None:
    with pytest.raises(ConfigurationError, match="attempts count from 1"):
        layout.retry_session("s", 0)


@given(TEXTS, TEXTS)
def test_keys_stay_in_the_directory_of_their_session(session: str, stem: str) -> None:
    directory = layout.session_prefix(session)
    assert posixpath.dirname(directory) == layout.PROFILE_DIR
    for key in (layout.trace_key(session, stem), layout.capture_record_key(session)):
        assert posixpath.dirname(key) == directory
        assert posixpath.normpath(key) == key


@given(PODS, RANKS)
def test_the_stem_of_a_host_is_its_file_name(pod: str, rank: int | None) -> None:
    stem = layout.file_stem(pod, rank)
    assert layout.trace_key("s", stem) == f"plugins/profile/s/{stem}.xplane.pb"


@given(TEXTS, TEXTS, st.sampled_from(["", "run/", "a/b/"]))
def test_traces_are_recognised_and_records_are_not(session: str, stem: str, above: str) -> None:
    assert layout.is_trace(above + layout.trace_key(session, stem))
    assert not layout.is_trace(above + layout.capture_record_key(session))
    assert layout.session_of(layout.trace_key(session, stem)) == layout.sanitize(session)
    assert layout.session_of(f"x/{layout.trace_key(session, stem)}") is None


@pytest.mark.parametrize(
    "key",
    [
        "plugins/profile/s/host.hlo_proto.pb",  # caches that XProf writes beside the traces
        "plugins/profile/s/host.op_stats_v2.pb",
        "plugins/profile/s/.cached_tools.json",
        "plugins/profile/s/.xplane.pb",
        "plugins/profile/host.xplane.pb",
        "plugins/profile/s/deeper/host.xplane.pb",
        "tensorboard/plugin/profile/s/host.xplane.pb",
        "host.xplane.pb",
    ],
)
def test_only_host_files_of_xprof_are_traces(key: str) -> None:
    assert not layout.is_trace(key)


@given(strategies.run_ids(), strategies.dns_labels(), strategies.dns_subdomains())
def test_a_run_has_one_directory_for_any_workload(run: str, namespace: str, workload: str) -> None:
    assert layout.run_directory("gs://b/p", run_id=run, namespace=namespace, workload=workload) == f"gs://b/p/{run}"


@pytest.mark.parametrize(
    ("root", "directory"),
    [
        ("gs://bucket", "gs://bucket/ml/trainer"),
        ("gs://bucket/p/", "gs://bucket/p/ml/trainer"),
        ("volume:///", "volume:///ml/trainer"),
        ("/", "/ml/trainer"),
        ("profiles", "profiles/ml/trainer"),
    ],
)
def test_without_a_run_the_directory_names_the_workload(root: str, directory: str) -> None:
    assert layout.run_directory(root, run_id=None, namespace="ml", workload="trainer") == directory


@given(TEXTS, TEXTS)
def test_directories_stay_below_their_root(namespace: str, workload: str) -> None:
    directory = layout.run_directory("/root", run_id=None, namespace=namespace, workload=workload)
    assert posixpath.normpath(directory) == directory
    assert directory.startswith("/root/")
    assert directory.count("/") == 3


RECORDS = st.tuples(st.integers(0, 999), st.integers(0, 99_999), st.text("0123456789abcdef", min_size=8, max_size=8))


@given(RECORDS, RECORDS, st.integers(1, 99_999), st.integers(1, 99_999))
def test_record_files_are_distinct_and_sort_by_number(
    first: tuple[int, int, str], second: tuple[int, int, str], number: int, later: int
) -> None:
    def key(process: tuple[int, int, str], number: int) -> str:
        attempt, rank, incarnation = process
        return layout.record_segment_key(attempt=attempt, rank=rank, incarnation=incarnation, number=number)

    assert layout.record_segment(key(first, number)) == (*first, number)
    assert (key(first, number) == key(second, later)) == ((first, number) == (second, later))
    assert (key(first, number) < key(first, later)) == (number < later)


@pytest.mark.parametrize(
    "key", ["run.json", "records/x.jsonl", "records/.mldiag-0.partial", "a/records/a0-r0-ab-00001.jsonl"]
)
def test_other_files_are_not_record_files(key: str) -> None:
    assert layout.record_segment(key) is None
