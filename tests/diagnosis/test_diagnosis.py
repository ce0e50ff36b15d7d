"""Findings of a session: the slow host is named with its cause, and nobody without a reason."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.findings import MAX_DIAGNOSIS_BYTES, Diagnosis, FindingHost, parse_diagnosis
from mldiagnostics_diagnosis.diagnosis import diagnose
from mldiagnostics_diagnosis.phases import PHASES
from mldiagnostics_diagnosis.summary import Memory
from support.host_summaries import changed, steady, synchronous_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.summary import HostSummary

SLOW_PHASES: list[Phase] = [phase for phase in PHASES if phase not in {"collective", "idle"}]
slow_phases = st.sampled_from(SLOW_PHASES)
hosts_and_culprit = st.integers(2, 9).flatmap(lambda hosts: st.tuples(st.just(hosts), st.integers(0, hosts - 1)))
seeds = st.integers(0, 2**32)


def noisy(
    hosts: int, steps: int, seed: int, *, culprit: int | None = None, phase: Phase = "host", s: float = 0
) -> list[HostSummary]:
    """Return a job whose hosts take up to 1 ms longer now and then, and one culprit."""
    rolls = random.Random(seed)
    work: list[list[dict[Phase, float]]] = [
        [{"host": rolls.uniform(0, 0.001)} for _ in range(steps)] for _ in range(hosts)
    ]
    if culprit is not None:
        for step in work[culprit]:
            step[phase] = step.get(phase, 0.0) + s
    return synchronous_job(work)


def codes(diagnosis: Diagnosis) -> list[str]:
    return [finding.code for finding in diagnosis.findings]


def named(diagnosis: Diagnosis) -> set[str]:
    return {host.name for finding in diagnosis.findings for host in finding.hosts}


@given(hosts_and_culprit, slow_phases, st.floats(0.004, 0.1), seeds)
def test_the_slow_host_is_named_with_its_phase_and_operation(
    place: tuple[int, int], phase: Phase, seconds: float, seed: int
) -> None:
    hosts, culprit = place
    diagnosis = diagnose(noisy(hosts, 20, seed, culprit=culprit, phase=phase, s=seconds), session="s")
    [finding] = [finding for finding in diagnosis.findings if finding.code == "SlowHost"]
    assert [host.name for host in finding.hosts] == [f"host-{culprit}"]
    assert (finding.phase, finding.operation) == (phase, f"op of {phase}")
    assert finding.cost_s == pytest.approx(seconds, abs=0.0015)


@given(st.integers(2, 9), seeds)
def test_no_host_of_a_healthy_job_is_named(hosts: int, seed: int) -> None:
    diagnosis = diagnose(noisy(hosts, 20, seed), session="s")
    assert (codes(diagnosis), named(diagnosis)) == (["NoProblemFound"], set())


@given(hosts_and_culprit, slow_phases, st.floats(0.005, 0.05), st.floats(0, 0.2), seeds)
def test_a_host_that_is_made_slower_is_never_replaced_by_another(
    place: tuple[int, int], phase: Phase, seconds: float, more: float, seed: int
) -> None:
    hosts, culprit = place
    for extra in (seconds, seconds + more):
        diagnosis = diagnose(noisy(hosts, 12, seed, culprit=culprit, phase=phase, s=extra), session="s")
        [finding] = [finding for finding in diagnosis.findings if finding.code == "SlowHost"]
        assert [host.name for host in finding.hosts] == [f"host-{culprit}"]


@given(hosts_and_culprit, slow_phases, st.floats(0, 0.05), seeds, st.randoms(use_true_random=False))
def test_neither_order_nor_names_of_hosts_matter(
    place: tuple[int, int], phase: Phase, seconds: float, seed: int, rolls: random.Random
) -> None:
    hosts, culprit = place
    summaries = noisy(hosts, 12, seed, culprit=culprit, phase=phase, s=seconds)
    new_names = rolls.sample([f"pod-{number}" for number in range(100)], hosts)
    renamed = {summary.host: name for summary, name in zip(summaries, new_names, strict=True)}
    shuffled = [changed(summary, host=renamed[summary.host]) for summary in summaries]
    rolls.shuffle(shuffled)
    before, after = diagnose(summaries, session="s"), diagnose(shuffled, session="s")
    assert codes(before) == codes(after)
    for one, other in zip(before.findings, after.findings, strict=True):
        assert {renamed[host.name] for host in one.hosts} == {host.name for host in other.hosts}
        assert (one.severity, one.phase, one.operation) == (other.severity, other.phase, other.operation)
        assert one.cost_s == pytest.approx(other.cost_s)


def test_severity_follows_the_share_of_the_step() -> None:
    for seconds, severity in ((0.001, None), (0.004, "warning"), (0.02, "critical")):
        diagnosis = diagnose(synchronous_job(steady(4, 10, {2: {"input": seconds}})), session="s")
        assert [each.severity for each in diagnosis.findings if each.code == "SlowHost"] == [severity] * bool(severity)


def test_two_slow_hosts_are_one_finding_with_the_later_one_first() -> None:
    job = synchronous_job(steady(6, 10, {1: {"input": 0.02}, 4: {"input": 0.03}}))
    finding = diagnose(job, session="s").verdict
    assert (finding.code, finding.phase, finding.host_count) == ("SeveralSlowHosts", "input", 2)
    assert [host.name for host in finding.hosts] == ["host-4", "host-1"]


def test_a_majority_is_never_slow() -> None:
    job = synchronous_job(steady(4, 10, {host: {"input": 0.02} for host in range(3)}))
    assert not named(diagnose(job, session="s"))


def test_hosts_that_are_late_in_turn_alternate() -> None:
    work = steady(4, 20)
    for step in range(20):
        for host in range(4):
            work[host] = [*work[host][:step], {"host": 0.02 * (step % 3 == host)}, *work[host][step + 1 :]]
    finding = diagnose(synchronous_job(work), session="s").verdict
    assert (finding.code, {host.name for host in finding.hosts}) == ("AlternatingHosts", {"host-0", "host-1", "host-2"})


@pytest.mark.parametrize("hosts", [2, 3, 4])
def test_regular_turns_of_hosts_show_among_noise(hosts: int) -> None:
    rolls = random.Random(hosts)
    work: list[list[dict[Phase, float]]] = [
        [{"host": 0.02 * (step % hosts == host) + rolls.uniform(0, 0.008)} for step in range(32)]
        for host in range(hosts)
    ]
    finding = diagnose(synchronous_job(work), session="s").verdict
    assert (finding.code, finding.host_count) == ("AlternatingHosts", hosts)


@given(st.integers(3, 8), seeds, seeds)
def test_a_host_that_other_work_delays_by_any_time_is_not_named(hosts: int, culprit: int, seed: int) -> None:
    rolls = random.Random(seed)
    times = [0.0, 0.001, 0.0025, 0.003, 0.004, 0.006] * 7
    rolls.shuffle(times)
    work: list[list[dict[Phase, float]]] = [[{} for _ in times] for _ in range(hosts)]
    work[culprit % hosts] = [{"host": time} for time in times]
    assert not named(diagnose(synchronous_job(work), session="s"))


def test_hosts_that_wait_for_a_slow_host_are_not_bound_by_communication() -> None:
    job = synchronous_job(steady(4, 10, {1: {"host": 0.01}}), transport_s=0.03)
    assert codes(diagnose(job, session="s")) == ["SlowHost"]


@given(st.integers(3, 8), slow_phases, st.floats(0.1, 0.5), st.floats(0.001, 0.2))
def test_a_delay_counts_from_a_tenth_of_the_step_without_it(
    hosts: int, phase: Phase, share: float, transport_s: float
) -> None:
    delay = share * (0.02 + transport_s) * 1.001
    job = synchronous_job(steady(hosts, 10, {0: {phase: delay}}), transport_s=transport_s)
    [finding] = [each for each in diagnose(job, session="s").findings if each.code == "SlowHost"]
    assert (finding.phase, [host.name for host in finding.hosts]) == (phase, ["host-0"])


def test_rare_long_delays_of_one_host_count() -> None:
    work = steady(4, 30)
    work[3] = [{"checkpoint": 0.2} if step % 5 == 0 else {} for step in range(30)]
    finding = diagnose(synchronous_job(work), session="s").verdict
    assert (finding.code, finding.phase, [host.name for host in finding.hosts]) == (
        "SlowHost",
        "checkpoint",
        ["host-3"],
    )


def test_rare_long_delays_count_among_short_ones_of_the_same_host() -> None:
    work = steady(4, 30)
    work[3] = [{"checkpoint": 0.1} if step % 3 == 0 else {"host": 0.004 * (step % 2)} for step in range(30)]
    finding = diagnose(synchronous_job(work), session="s").verdict
    assert (finding.code, finding.phase, finding.hosts[0].name) == ("SlowHost", "checkpoint", "host-3")
    assert "arrives 100 ms after the others in 10 of 30 steps, 33.3 ms per step on average" in finding.message


@pytest.mark.parametrize("late", [range(10, 21), [*range(4, 9), *range(20, 25)]])
def test_a_host_that_is_late_for_a_while_is_not_late_as_a_rule(late: Sequence[int]) -> None:
    work = steady(4, 30)
    work[1] = [{"host": 0.016 * (step in late)} for step in range(30)]
    assert not named(diagnose(synchronous_job(work), session="s"))


def test_a_slow_network_names_no_host() -> None:
    diagnosis = diagnose(synchronous_job(steady(4, 10), transport_s=0.02), session="s")
    assert (codes(diagnosis), named(diagnosis)) == (["CommunicationBound"], set())


def test_hosts_that_wait_for_a_missing_host_are_not_bound_by_communication() -> None:
    job = synchronous_job(steady(4, 10), transport_s=0.02)
    diagnosis = diagnose(job, session="s", missing=["trainer-4: has no trace: Unreachable; capture the session again"])
    assert codes(diagnosis) == ["Inconclusive"]
    assert diagnosis.findings[0].message.startswith("trainer-4: has no trace")


def without_collectives(summary: HostSummary) -> HostSummary:
    assert summary.steps
    return changed(summary, steps=summary.steps.model_copy(update={"arrivals": (), "waits": ()}))


@pytest.mark.parametrize("hosts", [{1}, {0, 1, 2}])
def test_hosts_that_never_meet_do_not_arrive_together(hosts: set[int]) -> None:
    job = synchronous_job(steady(3, 10))
    job = [without_collectives(each) if index in hosts else each for index, each in enumerate(job)]
    [doubt] = diagnose(job, session="s").findings
    names = ", ".join(f"host-{host}" for host in sorted(hosts))
    assert (doubt.code, doubt.host_count) == ("Inconclusive", len(hosts))
    assert doubt.message == f"{names}: no collectives in the trace, so the hosts cannot be compared."


def test_hosts_that_never_meet_have_the_findings_of_each_host() -> None:
    job = [without_collectives(each) for each in synchronous_job(steady(3, 10, {n: {"input": 0.02} for n in range(3)}))]
    assert codes(diagnose(job, session="s")) == ["InputBound", "Inconclusive"]


@pytest.mark.parametrize(
    ("phase", "code"),
    [
        ("input", "InputBound"),
        ("transfer", "TransferBound"),
        ("host", "HostBound"),
        ("compilation", "Recompiling"),
        ("callback", "DebugCallback"),
    ],
)
def test_a_phase_that_is_long_on_all_hosts(phase: Phase, code: str) -> None:
    job = synchronous_job(steady(4, 10, {host: {phase: 0.02} for host in range(4)}))
    finding = diagnose(job, session="s").verdict
    assert (finding.code, finding.phase, finding.operation) == (code, phase, f"op of {phase}")
    assert finding.cost_s == pytest.approx(0.02)


def test_one_host_alone_is_judged_without_a_comparison() -> None:
    [summary, _] = synchronous_job(steady(2, 10, {0: {"input": 0.02}}))
    assert codes(diagnose([summary], session="s")) == ["InputBound"]


def test_the_capture_of_one_pod_says_once_that_nothing_is_compared() -> None:
    [summary, _] = synchronous_job(steady(2, 10))
    [verdict] = diagnose([summary], session="s", narrowed_by="podName").findings
    assert (verdict.code, "no comparison with others" in verdict.message) == ("NoProblemFound", True)


def test_findings_are_ordered_by_cost() -> None:
    work = steady(4, 10, {host: {"input": 0.01} for host in range(4)})
    work[2] = [{"input": 0.01, "callback": 0.1}] * 10
    costs = [finding.cost_s for finding in diagnose(synchronous_job(work), session="s").findings]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)


def test_too_few_steps_are_inconclusive() -> None:
    diagnosis = diagnose(synchronous_job(steady(4, 4, {1: {"input": 0.5}})), session="s")
    assert (codes(diagnosis), named(diagnosis)) == (["Inconclusive"], set())
    assert "Only 4 steps" in diagnosis.verdict.message


def test_hosts_with_few_steps_each_are_of_one_session() -> None:
    job = synchronous_job(steady(4, 4, {1: {"input": 0.5}}))
    last = job[3].steps
    assert last
    parts = {name: getattr(last, name)[1:] for name in ("numbers", "seconds", "arrivals", "waits")}
    phases = {phase: series[1:] for phase, series in last.phases.items()}
    job[3] = changed(job[3], steps=last.model_copy(update={**parts, "phases": phases}))
    assert "Only 3 steps" in diagnose(job, session="s").verdict.message


def test_low_coverage_leaves_the_cause_out_and_says_so() -> None:
    job = [changed(each, coverage=0.5) for each in synchronous_job(steady(4, 10, {1: {"input": 0.05}}))]
    slow, doubt = diagnose(job, session="s").findings
    assert (slow.code, slow.phase, slow.hosts[0].name) == ("SlowHost", None, "host-1")
    assert "explain only 50 %" in doubt.message


def test_hosts_of_another_program_are_left_out_and_named() -> None:
    job = synchronous_job(steady(4, 10, {1: {"input": 0.05}}))
    other = changed(job[3], program="f" * 16)
    diagnosis = diagnose([*job[:3], other], session="s")
    assert codes(diagnosis) == ["SlowHost", "Inconclusive"]
    assert diagnosis.findings[1].message.startswith("host-3: executes another program")


def test_traces_without_steps_are_inconclusive() -> None:
    job = [changed(each, steps=None) for each in synchronous_job(steady(2, 10))]
    assert codes(diagnose(job, session="s")) == ["Inconclusive"]


def test_hosts_without_a_common_step_are_inconclusive() -> None:
    one, other = synchronous_job(steady(2, 10))
    assert other.steps
    shifted = other.steps.model_copy(update={"numbers": tuple(range(500, 510))})
    assert codes(diagnose([one, changed(other, steps=shifted)], session="s")) == ["Inconclusive"]


@given(st.integers(3, 6), st.integers(1, 2), st.integers(0, 3), seeds)
def test_traces_of_another_session_are_left_out_and_the_findings_stay(
    hosts: int, strangers: int, shared: int, seed: int
) -> None:
    job = noisy(hosts, 20, seed, culprit=0, phase="input", s=0.02)
    others = [changed(each, host=f"other-{each.host}") for each in noisy(hosts, 20, seed)[:strangers]]
    moved = [
        each.steps.model_copy(update={"numbers": tuple(range(120 - shared, 140 - shared))})
        for each in others
        if each.steps
    ]
    session = [*job, *(changed(each, steps=steps) for each, steps in zip(others, moved, strict=True))]
    slow, doubt = diagnose(session, session="s").findings
    assert (slow.code, [host.name for host in slow.hosts]) == ("SlowHost", ["host-0"])
    assert (doubt.code, doubt.host_count) == ("Inconclusive", strangers)
    assert "shares fewer than 5 steps with the other hosts" in doubt.message


def test_two_sessions_of_equal_size_name_nobody() -> None:
    job = noisy(3, 20, 1, culprit=0, phase="input", s=0.02)
    again = [
        changed(
            each, host=f"other-{each.host}", steps=each.steps.model_copy(update={"numbers": tuple(range(500, 520))})
        )
        for each in job
        if each.steps
    ]
    [doubt] = diagnose([*job, *again], session="s").findings
    assert (doubt.code, doubt.host_count) == ("Inconclusive", 6)
    assert doubt.next_step.startswith("Keep traces of two sessions or attempts in two folders")


@pytest.mark.parametrize(
    ("phase", "others", "cause"), [("compute", 50, "memory"), ("compute", 96, "compute"), ("input", 50, "input")]
)
def test_memory_is_a_cause_only_on_a_host_that_has_less_of_it(phase: Phase, others: int, cause: str) -> None:
    job = synchronous_job(steady(4, 10, {1: {phase: 0.02}}))
    used = [Memory(peak_bytes=98 if host == 1 else others, limit_bytes=100) for host in range(4)]
    job = [changed(each, memory=memory) for each, memory in zip(job, used, strict=True)]
    [finding] = [each for each in diagnose(job, session="s").findings if each.code == "SlowHost"]
    assert (finding.phase, finding.hosts[0].name) == (cause, "host-1")


def test_no_summaries_at_all() -> None:
    assert codes(diagnose([], session="s", missing=["a.xplane.pb: is empty; capture the host again"])) == [
        "Inconclusive"
    ]


def test_rank_pod_and_node_come_from_the_record() -> None:
    known = {"host-1": FindingHost("host-1", 1, "trainer-1", "n7")}
    diagnosis = diagnose(synchronous_job(steady(4, 10, {1: {"input": 0.05}})), session="s", hosts=known)
    assert diagnosis.verdict.hosts == (known["host-1"],)


def test_the_diagnosis_of_a_thousand_hosts_fits_its_file() -> None:
    extra: dict[int, dict[Phase, float]] = {host: {"callback": 0.05} for host in range(0, 1000, 3)}
    names = [f"{'long-name-' * 18}{host}" for host in range(1000)]
    diagnosis = diagnose(synchronous_job(steady(1000, 10, extra), names=names), session="s", missing=["x" * 900] * 50)
    content = json.dumps(diagnosis.to_json()).encode()
    assert len(content) <= MAX_DIAGNOSIS_BYTES
    assert parse_diagnosis(content, source="d") == diagnosis
