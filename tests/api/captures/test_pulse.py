"""Traces that a pulse keeps: suspects, one host to compare with, and hosts without a summary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.findings import Finding, FindingHost
from mldiagnostics_api.captures.pulse import MAX_SUSPECTS, kept_hosts, pulse_ms
from mldiagnostics_api.v1alpha1.shared import LONGEST_PULSE_MS
from mldiagnostics_diagnosis.matching import FEWEST_STEPS

HOSTS = st.frozensets(st.sampled_from([f"trainer-{number}" for number in range(20)]), min_size=1)


def finding(*hosts: str, severity: str = "critical") -> Finding:
    return Finding(
        code="SlowHost", severity=severity, message="m", next_step="n", hosts=tuple(FindingHost(host) for host in hosts)
    )


@given(st.none() | st.floats(0, 1000))
def test_a_pulse_has_the_steps_that_a_diagnosis_compares_within_its_limits(step_time_s: float | None) -> None:
    duration_ms = pulse_ms(step_time_s)
    assert 300 <= duration_ms <= LONGEST_PULSE_MS
    if step_time_s and step_time_s < 1.4:
        assert duration_ms >= (FEWEST_STEPS + 1) * 1000 * step_time_s


def test_the_slow_host_and_one_other_are_kept_of_a_thousand() -> None:
    hosts = [f"trainer-{number:03}" for number in range(1000)]
    assert kept_hosts([finding("trainer-700")], hosts, hosts) == {"trainer-700", "trainer-000"}


def test_a_remark_names_no_suspect() -> None:
    hosts = ["trainer-0", "trainer-1"]
    assert kept_hosts([finding("trainer-1", severity="info")], hosts, hosts) == {"trainer-0"}


@given(HOSTS, HOSTS, st.lists(HOSTS, max_size=3))
def test_nothing_without_a_summary_is_given_up_and_a_second_look_keeps_the_same(
    hosts: frozenset[str], summarized: frozenset[str], named: list[frozenset[str]]
) -> None:
    findings = [finding(*sorted(each)) for each in named]
    kept = kept_hosts(findings, summarized, hosts)
    assert hosts - summarized <= kept <= hosts
    assert kept_hosts(findings, summarized, kept) == kept
    suspects = frozenset[str]().union(*named)
    assert len(kept & suspects & summarized) <= MAX_SUSPECTS
    assert bool(kept - suspects) == bool(hosts - suspects)
    assert kept & suspects or not hosts & suspects
