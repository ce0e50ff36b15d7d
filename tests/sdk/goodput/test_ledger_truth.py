"""Simulated jobs with known results: the oracle and the ledger find them in their logs."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.history import History
from support.goodput.histories import dice, jobs, with_harmless_changes
from support.goodput.oracle import Oracle
from support.goodput.truth import Job, Style

if TYPE_CHECKING:
    from mldiagnostics.goodput.account import Account
    from mldiagnostics.goodput.events.event import Event

ESTIMATED = {
    BadputType.PROGRAM_STARTUP,
    BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION,
    BadputType.WASTED_PROGRESS_FROM_DISRUPTION,
}


def ledger_of(events: list[Event]) -> Ledger:
    ledger = Ledger(splits=False)
    for event in events:
        ledger.add(event)
    return ledger


def agrees(account: Account, job: Job) -> None:
    assert {**account.unproductive, **({None: account.productive} if account.productive else {})} == job.truth()
    assert account.disruptions == job.restarts
    assert account.overlay == job.overlay


@given(jobs(), dice())
def test_the_oracle_finds_the_truth_in_any_order_of_events(job: Job, random: Random) -> None:
    agrees(Oracle(job.events, job.clock).account(), job)
    agrees(Oracle(with_harmless_changes(job.events, random), job.clock).account(), job)


@given(jobs(), dice())
def test_the_ledger_finds_the_truth_in_any_order_of_events(job: Job, random: Random) -> None:
    agrees(ledger_of(job.events).account(job.clock), job)
    agrees(ledger_of(with_harmless_changes(job.events, random)).account(job.clock), job)


@given(jobs(jitter=700))
def test_different_step_times_only_change_the_estimates(job: Job) -> None:
    """Startup and kept last steps are estimates: wrong by the jitter at most, for each attempt."""
    account = ledger_of(job.events).account(job.clock)
    slack = 700_000 * len(job.firsts)
    truth = job.truth()
    assert abs(account.productive - truth[None]) <= 2 * slack
    for spent in {*truth, *account.unproductive} - {None}:
        assert spent is not None
        all_jobs = account.unproductive.get(spent, 0)
        assert abs(all_jobs - truth[spent]) <= (slack if spent.bucket in ESTIMATED else 0)


@given(st.lists(jobs(attempts=2, steps=3), min_size=1, max_size=3), dice())
def test_runs_in_one_log_are_separated(all_jobs: list[Job], random: Random) -> None:
    history = History()
    log_events = [event._replace(run=f"run-{number}") for number, job in enumerate(all_jobs) for event in job.events]
    random.shuffle(log_events)
    for event in log_events:
        history.add(event)
    for number, job in enumerate(all_jobs):
        agrees(history.of(job.clock, f"run-{number}").account(job.clock), job)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_history_is_exact(seed: int) -> None:
    random = Random(seed)
    job = Job(random, Style(step_ends=bool(seed % 2), hosts=3)).live(attempts=40, steps=100)
    agrees(ledger_of(with_harmless_changes(job.events, random)).account(job.clock), job)
