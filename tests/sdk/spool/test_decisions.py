"""Decisions about the spool: its places, directory names, uploaded files and their keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.layout import record_segment_key, trace_key
from mldiagnostics.spool.decisions import (
    MAX_AGE_S,
    candidates,
    folder_of,
    is_expired,
    names_for,
    normalized,
    upload_order,
)

RECORDS = "r/" + record_segment_key(attempt=0, rank=0, incarnation="0123abcd", number=1)
TRACE = "r/" + trace_key("a0-s10", "host")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/home/u"}, ["/home/u/.local/state/mldiagnostics/spool", "/tmp/mldiagnostics-7"]),
        ({"HOME": "/home/u", "XDG_STATE_HOME": "/s/"}, ["/s/mldiagnostics/spool", "/tmp/mldiagnostics-7"]),
        ({"XDG_STATE_HOME": "relative"}, ["/tmp/mldiagnostics-7"]),
        ({}, ["/tmp/mldiagnostics-7"]),
        ({"TMPDIR": "/scratch/"}, ["/scratch/mldiagnostics-7"]),
        (
            {"MLDIAG_SPOOL": "/spool", "HOME": "/"},
            ["/spool", "/.local/state/mldiagnostics/spool", "/tmp/mldiagnostics-7"],
        ),
        ({"MLDIAG_SPOOL": "/tmp/mldiagnostics-7"}, ["/tmp/mldiagnostics-7"]),
    ],
)
def test_mldiag_spool_is_the_first_candidate_and_tmpdir_the_last(env: dict[str, str], expected: list[str]) -> None:
    assert candidates(env, user=7) == expected


@pytest.mark.parametrize(
    ("destination", "form"),
    [
        ("/data//runs/", "/data/runs"),
        ("file:///data/my%20runs", "/data/my runs"),
        ("gs://bucket/runs/", "gs://bucket/runs"),
        ("/", "/"),
        ("otlp http://host:4318", "otlp http://host:4318"),
    ],
)
def test_a_destination_has_one_form(destination: str, form: str) -> None:
    assert normalized(destination) == form
    assert normalized(form) == form


@given(st.lists(st.text(max_size=200), unique=True, max_size=20), st.integers(0, 2**31))
def test_folder_names_are_safe_and_unique_per_destination_and_user(destinations: list[str], user: int) -> None:
    names = [folder_of(destination, user=user) for destination in destinations]
    assert all(name.isascii() and "/" not in name and not name.startswith(".") and len(name) < 100 for name in names)
    assert len(set(names)) == len(names)
    assert all(folder_of(each, user=user + 1) not in names for each in destinations)


def test_run_json_is_uploaded_first_and_traces_last() -> None:
    assert upload_order([TRACE, RECORDS, "r/run.json"]) == ["r/run.json", RECORDS, TRACE]


@pytest.mark.parametrize("key", ["r/records/.mldiag-0123456789abcdef.partial", ".hidden/x", "r/a\nb", "../x", ""])
def test_partial_files_and_invalid_keys_are_not_uploaded(key: str) -> None:
    assert upload_order([key, "r/run.json"]) == ["r/run.json"]


def test_only_a_trace_may_be_stored_under_its_sessions_next_name() -> None:
    assert list(names_for(RECORDS)) == [RECORDS]
    assert list(names_for(TRACE))[:3] == [TRACE, *("r/" + trace_key(f"a0-s10-{number}", "host") for number in (2, 3))]


def test_files_older_than_30_days_are_expired() -> None:
    assert is_expired(0.0, MAX_AGE_S + 1)
    assert not is_expired(1.0, MAX_AGE_S + 1)
