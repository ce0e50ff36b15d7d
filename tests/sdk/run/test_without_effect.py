"""Options without effect get one warning each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.run.options import RunOptions
from mldiagnostics.run.without_effect import without_effect

if TYPE_CHECKING:
    from support.programs import Programs

PARAMETERS = "base_url='http://control:8080', cluster_id='c1'"
VARIABLES = {"MLDIAG_CONTROL_PLANE_URL": "https://control:8443", "DIAGON_BASE_URL": "http://control:8080"}


@pytest.mark.parametrize("strict", [False, True])
def test_each_unused_option_is_reported_once(programs: Programs, *, strict: bool) -> None:
    begin = f"machinelearning_run('job', {PARAMETERS}, strict={strict})"
    ended = programs.run(f"from mldiagnostics import machinelearning_run\n{begin}\n{begin}", env=VARIABLES)
    assert ended.code == 0, ended.err
    notes = [line for line in ended.err.splitlines() if "has no effect yet" in line]
    assert [line.partition("=")[0] for line in notes] == [
        "machinelearning_run(base_url",
        "machinelearning_run(cluster_id",
        *VARIABLES,
    ]
    assert len(ended.err.splitlines()) == 2 + len(notes)


@pytest.mark.parametrize("said", [{}, {"base_url": None, "cluster_id": ""}, {"base_url": 5}])
def test_unset_options_are_not_reported(said: dict[str, object]) -> None:
    assert without_effect(RunOptions(**said), {"MLDIAG_CONTROL_PLANE_URL": "", "DIAGON_CLUSTER_ID": "c"}) == {}
