from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.identity import run_label_value
from mldiagnostics_api.runs.names import reported_run_name, run_label, run_name

RUN = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"
NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
CHOSEN = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)


def test_the_name_shows_the_workload_and_the_id() -> None:
    assert run_name("trainer", RUN) == "trainer-38ecfc8a2d"
    assert run_name("a" * 39 + "-b", RUN) == "a" * 39 + "-38ecfc8a2d"
    assert reported_run_name(RUN) == "r-38ecfc8a2d254da9"
    assert run_label(RUN) == run_label_value(RUN)


@given(st.from_regex(NAME, fullmatch=True).filter(lambda name: len(name) <= 253), CHOSEN)
def test_names_and_labels_are_legal_for_every_workload_and_chosen_id(workload: str, run: str) -> None:
    for name in (run_name(workload, run), reported_run_name(run)):
        assert re.fullmatch(NAME, name)
        assert len(name) <= 63
    assert re.fullmatch(r"[0-9a-f]{32}", run_label(run))


def test_chosen_ids_that_start_alike_have_names_of_their_own() -> None:
    assert reported_run_name("experiment-000001-a") != reported_run_name("experiment-000001-b")
