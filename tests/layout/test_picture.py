"""The picture of a run of `make test` has what each log says, and ends with the reason of a failure."""

from __future__ import annotations

from support.suite.picture import failed_log, picture, repeat, table

LOG = """\
bringing up nodes...
..s.F
failed now: tests/test_x.py::test_x[a b]
=================================== FAILURES ===================================
____________________________________ test_x ____________________________________
>       assert 1 == 2
E       assert 1 == 2
============================= slowest 15 durations =============================
12.40s setup    tests/test_y.py::test_y
114.02s call     tests/test_z.py::test_z[a b]
=============================== processor's time ===============================
31.52s all tests
20.31s processor tests/test_z.py
11.21s processor tests/test_y.py
=========================== short test summary info ============================
SKIPPED [3] tests/test_r.py:7: needs root; run `sudo make root`
FAILED tests/test_x.py::test_x[a b] - assert 1 == 2
1 failed, 5 passed, 3 skipped in 75.41s (0:01:15)
"""
PREPARATION = """\
Building helm 3.19.5 (about 45 s) ...
  still building after 1 min of about 45 s
  done in 1 min 2 s
Installing etcd 3.5.1 ...
  done in 0.5 s
"""


def test_a_log_of_pytest_has_counts_times_skips_and_failures() -> None:
    seen = picture(LOG)
    assert seen.tests == "1 failed, 5 passed, 3 skipped"
    assert seen.slowest == ("114 s call of tests/test_z.py::test_z[a b]", "12 s setup of tests/test_y.py::test_y")
    assert seen.costliest == ("20 s for tests/test_z.py", "11 s for tests/test_y.py")
    assert seen.skips == ("3 times: tests/test_r.py:7: needs root; run `sudo make root`",)
    assert seen.failures == ("tests/test_x.py::test_x[a b]",)


def test_a_preparation_has_what_it_made() -> None:
    assert picture(PREPARATION).made == ("Building helm 3.19.5, 1 min 2 s", "Installing etcd 3.5.1, 0.5 s")


def test_the_failures_of_a_log_are_shown_without_the_rest() -> None:
    assert failed_log(LOG).splitlines()[0].strip("=") == " FAILURES "
    assert failed_log(LOG).splitlines()[-1] == "E       assert 1 == 2"
    assert failed_log("make: *** no rule\n") == "make: *** no rule"


def test_the_table_has_a_line_for_each_stage_and_the_command_has_the_seed() -> None:
    lines = table([("FAILED", 75.4, "unit tests", picture(LOG)), ("passed", 6.0, "tools", picture(PREPARATION))])
    assert lines[0] == "FAILED     1.3 min  unit tests: 1 failed, 5 passed, 3 skipped"
    assert "    made: Installing etcd 3.5.1, 0.5 s" in lines
    assert repeat(picture(LOG).failures, 7) == (
        ".venv/bin/python -m pytest -q --randomly-seed=7 --hypothesis-seed=7 'tests/test_x.py::test_x[a b]'"
    )
