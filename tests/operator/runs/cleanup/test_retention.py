from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.runs.cleanup.retention import EndedRun, expired_runs

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RUNS = st.lists(
    st.builds(
        lambda namespace, number, age_s, ttl_s: EndedRun(
            namespace, f"r{number}", f"u{number}", NOW - timedelta(seconds=age_s), ttl_s
        ),
        st.sampled_from("ab"),
        st.integers(0, 10**6),
        st.integers(0, 100),
        st.none() | st.integers(0, 100),
    ),
    max_size=12,
    unique_by=lambda run: run.uid,
)


@given(RUNS, st.none() | st.integers(0, 100), st.integers(0, 5))
def test_only_old_and_surplus_runs_expire(runs: list[EndedRun], ttl_s: int | None, keep: int) -> None:
    expired = expired_runs(runs, now=NOW, ttl_s=ttl_s, keep=keep)
    kept = [run for run in runs if run not in expired]
    for run in kept:
        lives_s = ttl_s if run.ttl_s is None else run.ttl_s
        assert lives_s is None or NOW - run.ended < timedelta(seconds=lives_s)
    for namespace in "ab":
        plain = [run for run in kept if run.namespace == namespace and run.ttl_s is None]
        assert len(plain) <= keep
        for run in (run for run in expired if run.namespace == namespace and run.ttl_s is None):
            old = ttl_s is not None and NOW - run.ended >= timedelta(seconds=ttl_s)
            assert old or (len(plain) == keep and all(run.ended <= other.ended for other in plain))


def test_nothing_expires_by_default_and_an_own_time_to_live_exempts_from_the_number() -> None:
    runs = [EndedRun("a", f"r{n}", f"u{n}", NOW - timedelta(days=n), None) for n in range(5)]
    assert expired_runs(runs, now=NOW, ttl_s=None, keep=1000) == []
    own = EndedRun("a", "own", "own", NOW - timedelta(days=9), 10**7)
    assert expired_runs([*runs, own], now=NOW, ttl_s=None, keep=2) == runs[2:]
