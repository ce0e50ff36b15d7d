"""The table of variables against the sources that read them, and the page made of it."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run.settings import VARIABLES, read_settings, reference

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/sdk-env.md"
LISTED = {name for variable in VARIABLES for name in re.split(r", | and ", variable.name)}
SOURCES = "".join(path.read_text() for path in (ROOT / "sdk/src/mldiagnostics").rglob("*.py"))


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), f"run: python -m mldiagnostics.run.settings > {PAGE.relative_to(ROOT)}"


def test_every_variable_of_ours_that_is_read_is_in_the_table() -> None:
    read = set(re.findall(r"\"(MLDIAG_[A-Z_]+|GKE_DIAGON_[A-Z]+)\"", SOURCES))
    assert read <= LISTED


def test_every_variable_in_the_table_is_read() -> None:
    parts = {f"SLURM_{part}": part for part in ("JOB_ID", "CLUSTER_NAME", "JOB_START_TIME")}
    assert {name for name in LISTED if f'"{parts.get(name, name)}"' not in SOURCES} <= {"HOSTNAME"}


@given(st.one_of(st.floats(), st.integers()).map(str) | st.text())
def test_an_invalid_heartbeat_is_reported(text: str) -> None:
    problems: dict[str, str] = {}
    seconds = read_settings({"MLDIAG_HEARTBEAT_SECONDS": text}, problems).heartbeat_s
    assert 0.1 <= seconds <= 3600
    assert problems or not text or seconds == float(text)
