from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.reports.models import MAX_CONFIG_BYTES, InvalidReport
from mldiagnostics_api.reports.reported_run import SILENT_S
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.reports.shown_configs import ShownConfigs
from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.http.intake import misses_events
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.memory import run_events, table
from mldiagnostics_operator.control_plane.memory.budget import FairBudget, ReportBudget
from mldiagnostics_operator.control_plane.memory.journal_page import JournalContent, read_state
from mldiagnostics_operator.control_plane.memory.run_memory import Change, WrittenFile
from mldiagnostics_operator.control_plane.memory.table import NotTheReporter, ReportTable, TableFull
from mldiagnostics_operator.control_plane.slices import finished
from support.cluster.reports import apply, body_of, persist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_operator.control_plane.http.bodies import PackedBody

MIB = 2**20
KEY = RunKey("ml", "a" * 64)
POD = Sender("ml", "default", "trainer-0", "uid-0", "node-0")
EVENTS = [Event(1_790_000_000_000_000 + at, EventCode(2 + at % 2), at // 2) for at in range(20)]


def report(
    incarnation: int = 0, sequence: int = 1, *, events: tuple[int, int] | None = None, **changes: Any
) -> PackedBody:
    document: dict[str, Any] = {"v": 1, "incarnation": f"{incarnation:08x}", "sequence": sequence, "sent": 1.0}
    if events is not None:
        document["events"] = {"first": events[0], "items": packing.pack(EVENTS[slice(*events)])}
    return body_of(document | changes)


def leads(incarnation: int, sequence: int, **changes: Any) -> PackedBody:
    return report(incarnation, sequence, rank=0, run={"name": f"name-{incarnation}-{sequence}"}, **changes)


def applied(reports: Sequence[PackedBody], received: Sequence[float] | None = None) -> ReportTable:
    reported = ReportTable()
    for number, each in enumerate(reports):
        apply(reported, KEY, each, POD, received[number] if received else 1.0)
    return reported


def facts(reported: ReportTable) -> ReportedRun:
    view = reported.view(KEY)
    assert view is not None
    return replace(view, revision=0)


@st.composite
def histories(draw: st.DrawFn) -> list[PackedBody]:
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
def test_repeats_and_reorders_change_nothing(reports: list[PackedBody], data: st.DataObject) -> None:
    in_order = applied(reports)
    mixed = applied([*data.draw(st.permutations(reports)), *data.draw(st.lists(st.sampled_from(reports)))])
    assert facts(mixed) == facts(in_order)
    for incarnation in {each.report.incarnation for each in reports}:
        assert persist_all(mixed).answer(KEY, incarnation) == persist_all(in_order).answer(KEY, incarnation)


def persist_all(reported: ReportTable) -> ReportTable:
    if reported.unpersisted():
        persist(reported, KEY)
    return reported


@given(histories())
def test_a_new_leader_knows_what_was_persisted(reports: list[PackedBody]) -> None:
    before = applied(reports)
    after = ReportTable()
    finished(after.restore(KEY, content(before)))
    assert facts(after) == facts(before)
    for incarnation in {each.report.incarnation for each in reports}:
        assert after.answer(KEY, incarnation) == before.answer(KEY, incarnation)


def test_the_silence_of_a_host_of_a_former_leader_counts_from_the_start_of_the_new_one() -> None:
    after = ReportTable(listening_since=100.0)
    finished(after.restore(KEY, content(applied([leads(0, 1)]))))
    view = after.view(KEY)
    assert view is not None
    [host] = view.hosts
    assert (host.received, host.received + host.silent_s, view.silent_s) == (1.0, 100.0 + SILENT_S, host.silent_s)
    apply(after, KEY, leads(0, 2), POD, 90.0)
    view = after.view(KEY)
    assert view is not None
    assert view.silent_s == SILENT_S


@given(histories(), st.data())
def test_a_journal_below_newer_reports_changes_nothing_of_them(reports: list[PackedBody], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(reports)))
    saved = content(applied(reports[:cut]))
    whole = applied(reports)
    late = applied(reports[cut - 1 :])
    finished(late.restore(KEY, saved))
    assert facts(persist_all(late)) == facts(persist_all(whole))


def content(reported: ReportTable) -> JournalContent:
    """Persist everything, and return what a journal has then."""
    page = persist(reported, KEY)
    state = finished(read_state(page.state, KEY))
    events = {name: segment.count for name, segment in page.segments.items()}
    return JournalContent(state.facts.owner, state, events)


def test_only_persisted_reports_are_acknowledged() -> None:
    reported = applied([leads(0, 1, events=(0, 4))])
    assert reported.answer(KEY, "00000000").persisted_sequence == 0
    page = finished(reported.page(KEY))
    assert page is not None
    apply(reported, KEY, leads(0, 2, events=(0, 10)), POD, 1.0)
    reported.persisted(KEY, page, {name: WrittenFile(1) for name in page.segments}, 1.0)
    answer = reported.answer(KEY, "00000000")
    assert (answer.persisted_sequence, answer.persisted_events) == (1, 4)
    assert list(reported.unpersisted()) == [KEY]
    persist(reported, KEY)
    answer = reported.answer(KEY, "00000000")
    assert (answer.persisted_sequence, answer.persisted_events) == (2, 10)
    assert not reported.unpersisted()


def test_the_account_ends_with_the_newest_report_whose_events_are_in_the_journal() -> None:
    reported = applied([leads(0, 1, events=(0, 4), sent=10.0), report(1, 1, rank=1, sent=90.0)])
    assert facts(reported).events_until == 0.0
    page = finished(reported.page(KEY))
    assert page is not None
    apply(reported, KEY, leads(0, 2, events=(0, 8), sent=20.0), POD, 1.0)
    reported.persisted(KEY, page, {name: WrittenFile(1) for name in page.segments}, 1.0)
    assert facts(reported).events_until == 10.0
    apply(reported, KEY, leads(0, 4, events=(12, 16), sent=40.0), POD, 1.0)  # the report before it was lost
    assert facts(persist_all(reported)).events_until == 20.0


def test_the_account_ends_with_the_newest_report_although_the_clock_of_its_process_was_set_back() -> None:
    reported = applied([leads(0, 1, events=(0, 4), sent=90.0)])
    assert facts(persist_all(reported)).events_until == 90.0
    apply(reported, KEY, leads(0, 2, events=(0, 8), sent=20.0), POD, 2.0)
    assert facts(persist_all(reported)).events_until == 20.0
    apply(reported, KEY, leads(0, 1, events=(0, 4), sent=90.0), POD, 3.0)  # it comes late a second time
    apply(reported, KEY, leads(1, 1, attempt=1, sent=10.0), POD, 4.0)  # the restart is on a host whose clock is behind
    assert facts(persist_all(reported)).events_until == 10.0
    apply(reported, KEY, leads(0, 3, events=(0, 8), sent=21.0), POD, 5.0)  # the process before is late
    assert facts(persist_all(reported)).events_until == 10.0


def test_a_journal_of_an_earlier_version_has_the_seconds_of_that_moment_alone() -> None:
    saved = content(applied([leads(0, 1, sent=90.0)]))
    after = ReportTable()
    facts_of_before = saved.state.facts.model_copy(update={"events_until": 90.0})
    finished(after.restore(KEY, replace(saved, state=replace(saved.state, facts=facts_of_before))))
    assert facts(after).events_until == 90.0
    apply(after, KEY, leads(0, 2, sent=20.0), POD, 2.0)
    assert facts(persist_all(after)).events_until == 20.0


def test_a_page_that_was_not_written_is_due_again() -> None:
    reported = applied([leads(0, 1)])
    finished(reported.page(KEY))
    reported.not_persisted(KEY)
    assert persist(reported, KEY).sequences == {"00000000": 1}


def test_events_behind_a_gap_are_requested_again() -> None:
    ahead = leads(0, 2, events=(8, 12))
    reported = applied([leads(0, 1, events=(0, 4)), ahead])
    assert misses_events(reported, KEY, ahead)
    persist(reported, KEY)
    assert reported.answer(KEY, "00000000").persisted_events == 4
    apply(reported, KEY, leads(0, 3, events=(4, 12)), POD, 1.0)
    assert persist(reported, KEY).segments["00000000"].count == 12


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
    apply(reported, KEY, report(1, 1, rank=0), other, 2.0)
    assert len(facts(reported).hosts) == 2
    apply(reported, KEY, report(1, 2, rank=0), other, 2.0 + limits.SUPERSEDED_S)
    assert [host.pod for host in facts(reported).hosts] == ["trainer-1"]


def test_pod_and_node_are_those_of_the_token() -> None:
    forged = {"pod": "other", "podUid": "other", "node": "other", "name": "h"}
    [host] = facts(applied([report(host=forged)])).hosts
    assert (host.pod, host.pod_uid, host.node, host.name) == ("trainer-0", "uid-0", "node-0", "h")


def test_configs_stay_when_later_reports_have_none() -> None:
    run = facts(
        applied([leads(0, 2, configs={"user": {"lr": 2}}), leads(0, 1, configs={"user": {"lr": 1}}), leads(0, 3)])
    )
    assert run.configs.sections["user"] == {"lr": "2"}


def test_configurations_that_are_too_large_are_left_out() -> None:
    large = {"software": {"jax": "0.10.2"}, "user": {"x": "y" * 5000, "lr": 1}}
    configs = facts(applied([leads(0, 1, configs=large)])).configs
    assert (configs.sections, configs.omitted) == ({"software": {"jax": "0.10.2"}, "user": {"lr": "1"}}, 1)
    larger = {"user": {"x": "y" * MAX_CONFIG_BYTES}}
    assert facts(applied([leads(0, 1, configs=larger)])).configs == ShownConfigs()


def test_an_account_writes_only_what_it_reported_first() -> None:
    reported = ReportTable()
    outside, other = Sender("ml", "alice"), Sender("ml", "bob")
    apply(reported, KEY, leads(0, 1), outside, 1.0)
    for sender in (other, POD):
        with pytest.raises(NotTheReporter):
            apply(reported, KEY, leads(0, 2), sender, 1.0)
    apply(reported, KEY, leads(0, 2), outside, 1.0)
    assert facts(reported).name == "name-0-2"


def of(namespace: str, run: int) -> RunKey:
    return RunKey(namespace, f"{run:064x}")


def fill(reported: ReportTable, namespace: str) -> int:
    """Report new runs until there is no room for another; return their number."""
    for number in range(100_000):
        try:
            apply(reported, of(namespace, number), report(), Sender(namespace, "a"), 1.0)
        except TableFull:
            return number
    raise AssertionError("the table has no bound")


def test_a_namespace_fills_at_most_half_of_the_memory_and_each_other_one_has_room() -> None:
    reported = ReportTable(ReportBudget(32 * MIB))
    counts = [fill(reported, name) for name in ("greedy", "second", "third")]
    assert counts[0] > counts[1] > counts[2] > 50
    budget = reported.budget.state
    assert budget.used_by("greedy") <= budget.total / 2 + 8192  # the last report was checked before it was counted
    apply(reported, of("greedy", 0), leads(0, 2, phase="Failed"), Sender("greedy", "a"), 2.0)  # a known process
    assert [run.phase for run in [reported.view(of("greedy", 0))] if run] == ["Failed"]
    for number in range(counts[0]):
        reported.forget(of("greedy", number))
    assert budget.used_by("greedy") == 0
    assert fill(reported, "fourth") > counts[1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=60))
def test_the_budget_is_what_the_runs_hold(steps: list[tuple[int, int, bool]]) -> None:
    reported, runs = ReportTable(), [of("ml", number) for number in range(4)]
    for sequence, (run, incarnation, forgets) in enumerate(steps, 1):
        if forgets:
            reported.forget(runs[run])
        else:
            sessions = [{"id": "s" * incarnation + "x", "directory": "d" * incarnation}]
            apply(reported, runs[run], leads(incarnation, sequence, events=(0, sequence), sessions=sessions), POD, 1.0)
    kept = applied([])
    for run in runs:
        if reported.view(run) and reported.is_unpersisted(run):
            before = reported.budget.events.used
            persist(reported, run)
            assert reported.budget.events.used <= before
    assert (reported.budget.events.used, kept.budget.state.used) == (0, 0)
    for run in runs:
        reported.forget(run)
    assert reported.budget.state.used == 0


def test_a_run_of_many_processes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_PROCESSES_OF_RUN", 2)
    reported = applied([report(0, 1, rank=0), report(1, 1, rank=1)])
    with pytest.raises(TableFull):
        apply(reported, KEY, report(2, 1, rank=2), POD, 1.0)
    apply(reported, KEY, report(1, 2, rank=1), POD, 1.0)


def test_a_rank_that_restarts_again_and_again_takes_no_more_room() -> None:
    reported = ReportTable()
    for incarnation in range(20):
        apply(reported, KEY, leads(incarnation, 1, attempt=incarnation), POD, float(incarnation))
        persist(reported, KEY)
    assert len(persist_all(reported).runs()) == 1
    apply(reported, KEY, leads(20, 1, attempt=20), POD, 20.0)
    assert len(persist(reported, KEY).sequences) <= limits.MAX_INCARNATIONS_OF_HOST + 1


def test_a_report_whose_events_do_not_fit_is_accepted_without_them() -> None:
    reported = ReportTable()
    reported.budget.events = FairBudget(45)
    apply(reported, KEY, leads(0, 1), POD, 1.0)
    apply(reported, KEY, leads(0, 2, events=(0, 20), phase="Completed", progress={"step": 7}), POD, 1.0)
    run = facts(reported)
    assert (run.phase, run.step, run.left_out) == ("Completed", 7, ("goodput events",))
    persist(reported, KEY)
    answer = reported.answer(KEY, "00000000")
    assert answer.persisted_sequence == 1
    assert 0 < answer.persisted_events < 20
    for sequence in range(3, 20):
        apply(reported, KEY, leads(0, sequence, events=(answer.persisted_events, 20)), POD, 100.0 * sequence)
        persist(reported, KEY)
        answer = reported.answer(KEY, "00000000")
    assert (answer.persisted_sequence, answer.persisted_events) == (19, 20)
    assert facts(reported).left_out == ()


def test_persisted_events_leave_the_memory() -> None:
    reported = applied([leads(0, 1, events=(0, 20))])
    assert reported.budget.events.used > 0
    persist(reported, KEY)
    assert reported.budget.events.used == 0


def test_events_beyond_the_limit_of_a_run_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_events, "MAX_EVENTS_OF_RUN", 6)
    reported = applied([leads(0, 1, events=(0, 4))])
    assert reported.answer(KEY, "00000000").accepts_events
    apply(reported, KEY, leads(0, 2, events=(0, 20)), POD, 1.0)
    assert persist(reported, KEY).segments["00000000"].count == 6
    assert not reported.answer(KEY, "00000000").accepts_events


def test_events_that_are_not_packed_are_rejected() -> None:
    with pytest.raises(InvalidReport, match="is not a packed event"):
        applied([body_of({"v": 1, "incarnation": "00000000", "sequence": 1, "sent": 1.0, "events": {"items": ["x"]}})])


def test_subscribers_are_called_with_each_change() -> None:
    reported, seen = ReportTable(), list[tuple[RunKey, Change]]()
    reported.subscribe(lambda key, change: seen.append((key, change)))
    for each in (leads(0, 1), leads(0, 1), leads(0, 2)):
        apply(reported, KEY, each, POD, 1.0)
    assert seen == [(KEY, Change.PHASE), (KEY, Change.FACTS)]


def test_people_wait_for_new_processes_first_steps_phases_and_attempts() -> None:
    reported, seen = ReportTable(), list[Change]()
    reported.subscribe(lambda _, change: seen.append(change))
    document: dict[str, Any] = {"v": 1, "incarnation": "00000000", "sent": 1.0, "rank": 0, "attempt": 0}
    step = {"step": 1, "changed": 1.0}
    histories: list[tuple[dict[str, Any], Change]] = [
        ({}, Change.PHASE),
        ({}, Change.FACTS),
        ({"progress": step}, Change.PHASE),
        ({"progress": step | {"step": 2}}, Change.FACTS),
        ({"progress": step, "attempt": 1}, Change.PHASE),
        ({"progress": step, "attempt": 1, "phase": "Failed"}, Change.PHASE),
    ]
    for sequence, (facts_of_report, _) in enumerate(histories, start=1):
        apply(reported, KEY, body_of(document | {"sequence": sequence} | facts_of_report), POD, 1.0)
    assert seen == [change for _, change in histories]


def test_the_peers_reports_fill_what_our_sdk_does_not() -> None:
    reported = ReportTable()
    reported.apply_peer(KEY, alias="uuid", name="theirs", phase=None, storage="gs://b", received=1.0)
    reported.apply_peer(KEY, alias="uuid", name="", phase="Failed", storage="", received=2.0)
    run = facts(reported)
    assert (run.aliases, run.name, run.phase, run.ended, run.storage) == (("uuid",), "theirs", "Failed", 2.0, "gs://b")
    after = ReportTable()
    finished(after.restore(KEY, content(reported)))
    assert facts(after) == run
