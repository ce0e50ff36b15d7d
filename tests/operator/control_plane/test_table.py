from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane import packing
from mldiagnostics.goodput.events import Event, EventCode
from mldiagnostics_api.reported import ReportedRun, RunKey
from mldiagnostics_api.reports import MAX_CONFIG_BYTES, InvalidReport, Report, read_report
from mldiagnostics_operator.control_plane import limits, run_memory, table
from mldiagnostics_operator.control_plane.journal_page import JournalContent, JournalPage
from mldiagnostics_operator.control_plane.sender import Sender
from mldiagnostics_operator.control_plane.table import NotTheReporter, ReportTable, TableFull

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = RunKey("ml", "a" * 64)
POD = Sender("ml", "default", "trainer-0", "uid-0", "node-0")
EVENTS = [Event(1_790_000_000_000_000 + at, EventCode(2 + at % 2), at // 2) for at in range(20)]


def report(incarnation: int = 0, sequence: int = 1, *, events: tuple[int, int] | None = None, **changes: Any) -> Report:
    document: dict[str, Any] = {"v": 1, "incarnation": f"{incarnation:08x}", "sequence": sequence, "sent": 1.0}
    if events is not None:
        document["events"] = {"first": events[0], "items": packing.pack(EVENTS[slice(*events)])}
    return read_report(document | changes)


def leads(incarnation: int, sequence: int, **changes: Any) -> Report:
    return report(incarnation, sequence, rank=0, run={"name": f"name-{incarnation}-{sequence}"}, **changes)


def applied(reports: Sequence[Report], received: Sequence[float] | None = None) -> ReportTable:
    reported = ReportTable()
    for number, each in enumerate(reports):
        reported.apply(KEY, each, POD, received[number] if received else 1.0)
    return reported


def facts(reported: ReportTable) -> ReportedRun:
    view = reported.view(KEY)
    assert view is not None
    return replace(view, revision=0)


def persist(reported: ReportTable, key: RunKey = KEY) -> JournalPage:
    page = reported.page(key)
    assert page is not None
    reported.persisted(key, page)
    return page


@st.composite
def histories(draw: st.DrawFn) -> list[Report]:
    """Reports of some processes, in the order in which they were made."""
    made = []
    for incarnation in range(draw(st.integers(1, 3))):
        for sequence in range(1, draw(st.integers(1, 4)) + 1):
            rank = incarnation
            changes = {
                "attempt": 0,
                "metrics": {"loss": float(sequence)},
                "progress": {"step": sequence},
                "phase": draw(st.sampled_from(["Active", "Completed"])),
                "sessions": [{"id": f"s{sequence}", "start": float(sequence)}],
            }
            run = {"run": {"name": f"n{sequence}"}, "events": (0, sequence * 3)} if rank == 0 else {}
            made.append(report(incarnation, sequence, rank=rank, **changes, **run))
    return made


@given(histories(), st.data())
def test_repeats_and_reorders_change_nothing(reports: list[Report], data: st.DataObject) -> None:
    in_order = applied(reports)
    mixed = applied([*data.draw(st.permutations(reports)), *data.draw(st.lists(st.sampled_from(reports)))])
    assert facts(mixed) == facts(in_order)
    for incarnation in {each.incarnation for each in reports}:
        assert persist_all(mixed).answer(KEY, incarnation) == persist_all(in_order).answer(KEY, incarnation)


def persist_all(reported: ReportTable) -> ReportTable:
    if reported.unpersisted():
        persist(reported)
    return reported


@given(histories())
def test_a_new_leader_knows_what_was_persisted(reports: list[Report]) -> None:
    before = applied(reports)
    after = ReportTable()
    after.restore(KEY, content(before))
    assert facts(after) == facts(before)
    for incarnation in {each.incarnation for each in reports}:
        assert after.answer(KEY, incarnation) == before.answer(KEY, incarnation)


@given(histories(), st.data())
def test_a_journal_below_newer_reports_changes_nothing_of_them(reports: list[Report], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(reports)))
    saved = content(applied(reports[:cut]))
    whole = applied(reports)
    late = applied(reports[cut - 1 :])
    late.restore(KEY, saved)
    assert facts(late) == facts(whole)


def content(reported: ReportTable) -> JournalContent:
    """Persist everything, and return what a journal has then."""
    page = persist(reported)
    state = orjson.loads(page.state)
    events = {name: segment.count for name, segment in page.segments.items()}
    return JournalContent(state["owner"], state["firstReceived"], state, events)


def test_only_persisted_reports_are_acknowledged() -> None:
    reported = applied([leads(0, 1, events=(0, 4))])
    assert reported.answer(KEY, "00000000").persisted_sequence == 0
    page = reported.page(KEY)
    assert page is not None
    reported.apply(KEY, leads(0, 2, events=(0, 10)), POD, 1.0)
    reported.persisted(KEY, page)
    answer = reported.answer(KEY, "00000000")
    assert (answer.persisted_sequence, answer.persisted_events) == (1, 4)
    assert list(reported.unpersisted()) == [KEY]
    persist(reported)
    answer = reported.answer(KEY, "00000000")
    assert (answer.persisted_sequence, answer.persisted_events) == (2, 10)
    assert not reported.unpersisted()


def test_a_page_that_was_not_written_is_due_again() -> None:
    reported = applied([leads(0, 1)])
    reported.page(KEY)
    reported.not_persisted(KEY)
    assert persist(reported).sequences == {"00000000": 1}


def test_events_behind_a_gap_are_requested_again() -> None:
    ahead = leads(0, 2, events=(8, 12))
    reported = applied([leads(0, 1, events=(0, 4)), ahead])
    assert reported.misses_events(KEY, ahead)
    persist(reported)
    assert reported.answer(KEY, "00000000").persisted_events == 4
    reported.apply(KEY, leads(0, 3, events=(4, 12)), POD, 1.0)
    assert persist(reported).segments["00000000"].count == 12


def test_a_restarted_rank_has_one_host_and_one_leader() -> None:
    reported = applied(
        [leads(0, 1), report(1, 1, rank=1), leads(2, 1, attempt=1), leads(0, 2)], received=[1.0, 1.0, 2.0, 3.0]
    )
    run = facts(reported)
    assert run.name == "name-2-1"
    assert [(host.rank, host.incarnation[-1], host.attempt) for host in run.hosts] == [(0, "2", 1), (1, "1", 0)]
    assert (run.attempt, run.last_received) == (1, 3.0)


def test_two_processes_that_claim_one_rank_are_two_hosts_while_both_report() -> None:
    other = Sender("ml", "default", "trainer-1", "uid-1")
    reported = applied([report(0, 1, rank=0)])
    reported.apply(KEY, report(1, 1, rank=0), other, 2.0)
    assert len(facts(reported).hosts) == 2
    reported.apply(KEY, report(1, 2, rank=0), other, 2.0 + limits.SUPERSEDED_S)
    assert [host.pod for host in facts(reported).hosts] == ["trainer-1"]


def test_pod_and_node_are_those_of_the_token() -> None:
    forged = {"pod": "other", "podUid": "other", "node": "other", "name": "h"}
    [host] = facts(applied([report(host=forged)])).hosts
    assert (host.pod, host.pod_uid, host.node, host.name) == ("trainer-0", "uid-0", "node-0", "h")


def test_configs_stay_when_later_reports_have_none() -> None:
    run = facts(
        applied([leads(0, 2, configs={"user": {"lr": 2}}), leads(0, 1, configs={"user": {"lr": 1}}), leads(0, 3)])
    )
    assert run.configs["user"] == {"lr": 2}


def test_configurations_are_bounded_by_section() -> None:
    large = {"software": {"jax": "0.10.2"}, "user": {"x": "y" * MAX_CONFIG_BYTES}}
    assert facts(applied([leads(0, 1, configs=large)])).configs == {
        "software": {"jax": "0.10.2"},
        "hardware": {},
        "user": {},
    }


def test_an_account_writes_only_what_it_reported_first() -> None:
    reported = ReportTable()
    outside, other = Sender("ml", "alice"), Sender("ml", "bob")
    reported.apply(KEY, leads(0, 1), outside, 1.0)
    for sender in (other, POD):
        with pytest.raises(NotTheReporter):
            reported.apply(KEY, leads(0, 2), sender, 1.0)
    reported.apply(KEY, leads(0, 2), outside, 1.0)
    assert facts(reported).name == "name-0-2"


def test_the_number_of_runs_and_processes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_PROCESSES_OF_RUN", 2)
    monkeypatch.setattr(table, "MAX_RUNS", 4)
    reported = applied([report(0, 1, rank=0), report(1, 1, rank=1)])
    with pytest.raises(TableFull):
        reported.apply(KEY, report(2, 1, rank=2), POD, 1.0)
    reported.apply(KEY, report(1, 2, rank=1), POD, 1.0)
    reported.apply(RunKey("ml", "b"), report(), POD, 1.0)
    with pytest.raises(TableFull):  # one namespace never fills the table
        reported.apply(RunKey("ml", "c"), report(), POD, 1.0)
    reported.apply(RunKey("other", "c"), report(), Sender("other", "a"), 1.0)
    reported.forget(KEY)
    reported.apply(RunKey("ml", "c"), report(), POD, 1.0)
    assert set(reported.runs()) == {RunKey("ml", "b"), RunKey("ml", "c"), RunKey("other", "c")}


def test_a_rank_that_restarts_again_and_again_takes_no_more_room() -> None:
    reported = ReportTable()
    for incarnation in range(20):
        reported.apply(KEY, leads(incarnation, 1, attempt=incarnation), POD, float(incarnation))
        persist(reported)
    assert len(persist_all(reported).runs()) == 1
    reported.apply(KEY, leads(20, 1, attempt=20), POD, 20.0)
    assert len(persist(reported).sequences) <= limits.MAX_INCARNATIONS_OF_HOST + 1


def test_too_many_unpersisted_events_are_refused_until_the_journal_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_OPEN_BYTES", 1)
    reported = applied([leads(0, 1, events=(0, 4))])
    with pytest.raises(TableFull):
        reported.apply(KEY, leads(0, 2, events=(4, 8)), POD, 1.0)


def test_events_beyond_the_limit_of_a_run_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_memory, "MAX_EVENTS_OF_RUN", 6)
    reported = applied([leads(0, 1, events=(0, 4))])
    assert reported.answer(KEY, "00000000").accepts_events
    reported.apply(KEY, leads(0, 2, events=(0, 20)), POD, 1.0)
    assert persist(reported).segments["00000000"].count == 6
    assert not reported.answer(KEY, "00000000").accepts_events


def test_events_that_are_not_packed_are_rejected() -> None:
    broken = read_report(
        {"v": 1, "incarnation": "00000000", "sequence": 1, "sent": 1.0, "events": {"first": 0, "items": ["x"]}}
    )
    with pytest.raises(InvalidReport, match="item 0 is not a packed event"):
        applied([broken])


def test_subscribers_are_called_with_each_change() -> None:
    reported, seen = ReportTable(), list[RunKey]()
    reported.subscribe(seen.append)
    for each in (leads(0, 1), leads(0, 1), leads(0, 2)):
        reported.apply(KEY, each, POD, 1.0)
    assert seen == [KEY, KEY]


def test_the_peers_reports_fill_what_our_sdk_does_not() -> None:
    reported = ReportTable()
    reported.apply_peer(KEY, alias="uuid", name="theirs", phase=None, storage="gs://b", received=1.0)
    reported.apply_peer(KEY, alias="uuid", name="", phase="Failed", storage="", received=2.0)
    run = facts(reported)
    assert (run.aliases, run.name, run.phase, run.ended, run.storage) == (("uuid",), "theirs", "Failed", 2.0, "gs://b")
    after = ReportTable()
    after.restore(KEY, content(reported))
    assert facts(after) == run
