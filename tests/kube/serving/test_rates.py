from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.serving.rates import RateLimits

PER_SECOND, BURST = 2.0, 5.0


@given(st.lists(st.floats(0, 10), max_size=100))
def test_a_client_gets_its_burst_and_its_rate(pauses: list[float]) -> None:
    rates, now, allowed = RateLimits(PER_SECOND, BURST, most=10), 0.0, 0
    for pause in pauses:
        now += pause
        wait_s = rates.take("client", now)
        allowed += not wait_s
        assert allowed <= BURST + PER_SECOND * now + 1e-6
        assert 0 <= wait_s <= 1 / PER_SECOND
        if wait_s:
            now += wait_s + 1e-9
            assert not rates.take("client", now)
            allowed += 1


@given(st.lists(st.integers(0, 20)))
def test_clients_do_not_share_a_rate_and_memory_is_bounded(clients: list[int]) -> None:
    rates = RateLimits(PER_SECOND, BURST, most=3)
    for client in clients:
        rates.take(client, 0.0)
        assert len(rates) <= 3
    assert not rates.take("new", 0.0)
