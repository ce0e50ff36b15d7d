"""The origin of a process, and of its forked children."""

from __future__ import annotations

import dataclasses

import pytest
from mldiagnostics.identity.origin import Origin
from support.records import RUN, origin


@pytest.mark.parametrize("storage", ["/runs", "/runs/", "gs://bucket/runs", "gs://bucket/runs/", "runs"])
def test_the_run_is_a_directory_of_the_storage(storage: str) -> None:
    assert origin(storage).directory == f"{storage.rstrip('/')}/{RUN}"


def test_the_storage_may_be_the_root() -> None:
    assert origin("/").directory == f"/{RUN}"


def test_a_child_differs_in_its_incarnation_only() -> None:
    parent = origin()
    first, second = parent.after_fork(), parent.after_fork()
    assert len({parent.incarnation, first.incarnation, second.incarnation}) == 3
    assert dataclasses.replace(first, incarnation=parent.incarnation) == parent
    assert isinstance(first, Origin)
