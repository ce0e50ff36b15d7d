from mldiagnostics.goodput.events.payloads import short_text
from mldiagnostics_api.disruptions.causes import CAUSES, DisruptionCause, goodput_name


def test_every_cause_has_one_entry_and_a_name_that_the_goodput_log_accepts() -> None:
    assert {entry.cause for entry in CAUSES} == set(DisruptionCause)
    names = [entry.goodput for entry in CAUSES]
    assert len(set(names)) == len(names) == len(DisruptionCause)
    assert all(short_text(name) == name for name in names)


def test_each_cause_of_a_status_has_its_name_in_the_goodput_account() -> None:
    assert goodput_name("NodeLost") == "node lost"
    assert goodput_name("") == goodput_name("Other") == ""
