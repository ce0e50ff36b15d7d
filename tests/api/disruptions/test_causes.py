from mldiagnostics.goodput.event_payloads import short_text
from mldiagnostics_api.disruptions.causes import CAUSES, DisruptionCause, goodput_cause


def test_every_cause_has_one_entry_and_a_name_that_the_goodput_log_accepts() -> None:
    assert {entry.cause for entry in CAUSES} == set(DisruptionCause)
    names = [entry.goodput for entry in CAUSES]
    assert len(set(names)) == len(names) == len(DisruptionCause)
    assert all(short_text(name) == name for name in names)


def test_the_program_knows_its_own_failures_better_than_the_cluster() -> None:
    assert goodput_cause(DisruptionCause.EXIT_CODE, "exception") == "exception"
    assert goodput_cause(DisruptionCause.UNKNOWN, "preemption") == "preemption"
    assert goodput_cause(DisruptionCause.NODE_LOST, "signal") == "node lost"
    assert goodput_cause(DisruptionCause.EXIT_CODE) == "exit code"
