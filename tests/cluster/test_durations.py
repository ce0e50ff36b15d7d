"""Estimates follow what was measured on this machine, and are never zero or negative."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from cluster import durations
from cluster.durations import Expected, Measured, about, expected_s, left_s, slowness
from cluster.progress import ClusterError, step
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

seconds = st.floats(0.1, 1e5)
titles = st.sampled_from(["Building a", "Building b", "Building c", "Loading d"])
steps = st.lists(st.builds(Expected, titles, seconds), max_size=6)
measurements = st.dictionaries(titles, st.builds(Measured, seconds, seconds))


def test_a_step_takes_as_long_as_the_last_time() -> None:
    assert expected_s(Expected("Building a", 100), {"Building a": Measured(40, 90)}) == 40


def test_a_new_step_takes_longer_where_others_took_longer() -> None:
    measured = {"Building b": Measured(300, 100), "Building c": Measured(900, 300)}
    assert 250 < expected_s(Expected("Building a", 100), measured) < 300
    assert expected_s(Expected("Building a", 100), {}) == 100
    first = {"Starting": Measured(2, 10)}
    assert 85 < expected_s(Expected("Building a", 100), first) < 100, "seconds say little about minutes"


@given(steps, measurements, seconds, seconds)
def test_time_passes_and_something_is_left_while_a_step_runs(
    planned: list[Expected], measured: dict[str, Measured], earlier: float, later: float
) -> None:
    earlier, later = sorted((earlier, later))
    whole, before, after = (left_s(planned, measured, running) for running in (0, earlier, later))
    assert whole >= before >= after >= 0
    assert bool(planned) == (after > 0)
    assert left_s(planned[1:], measured) <= after
    assert durations.FASTEST <= slowness(measured.values()) <= durations.SLOWEST


@given(seconds)
def test_an_estimate_is_rounded_up(expected: float) -> None:
    number, unit = re.fullmatch(r"(\d+) (s|min)", about(expected)).groups()  # type: ignore[union-attr]
    stated = int(number) * {"s": 1, "min": 60}[unit]
    assert expected - 1 <= stated <= expected + 60
    assert stated >= 10


def test_a_step_records_its_duration_and_a_failed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path))
    with step("Building a", about_s=3600):
        pass
    with pytest.raises(ClusterError), step("Building b", about_s=5):
        raise ClusterError("no compiler")
    with step("of no known duration"):
        pass
    recorded = durations.load()
    assert recorded.keys() == {"Building a"}
    assert recorded["Building a"].usual_s == 3600
    assert recorded["Building a"].seconds < 3600
    with step("Building a", about_s=3600):
        pass
    assert re.findall(r"\(about (.*)\)", capsys.readouterr().err)[::2] == ["60 min", "10 s"]


@pytest.mark.parametrize("content", ["", "[]", '{"Building a": 3}', '{"Building a": ["x", 1]}'])
def test_a_damaged_record_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path))
    (tmp_path / "durations.json").write_text(content)
    assert durations.load() == {}
