from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.serving.closing_order import ClosingOrder
from mldiagnostics_kube.serving.connection import Connection, Stage

LIMIT = 12
YOUNG_S = 5.0
STEPS = st.tuples(st.sampled_from(["open", "move", "close"]), st.integers(0, 30), st.sampled_from(Stage))


@given(st.lists(STEPS, max_size=60))
def test_the_largest_address_beyond_its_share_gives_way_first(steps: list[tuple[str, int, Stage]]) -> None:
    order, connections = ClosingOrder(LIMIT), list[Connection]()
    for now, (step, number, stage) in enumerate(steps):
        if step == "open" and len(connections) < LIMIT:
            connections.append(Connection(address=f"10.0.0.{number % 4}", since_s=now, stage=stage))
            order.add(connections[-1])
        elif step == "move" and connections:
            connection = connections[number % len(connections)]
            connection.stage, connection.since_s = stage, now
            order.move(connection)
        elif step == "close" and connections:
            order.remove(connections.pop(number % len(connections)))
        if not connections:
            continue
        young_since_s = now - YOUNG_S

        def oldest(those: list[Connection], since_s: float = young_since_s) -> tuple[Stage, float]:
            return min(each.rank(since_s) for each in those)

        first = order.first(young_since_s)
        sizes = Counter(each.address for each in connections)
        share = LIMIT / len(sizes)
        idle = [each for each in connections if each.stage is not Stage.ANSWERING]
        unfair = [sizes[each.address] for each in idle if sizes[each.address] > share]
        if unfair:
            assert sizes[first.address] == max(unfair)
            assert first.rank(young_since_s) == oldest([each for each in connections if each.address == first.address])
        else:
            assert first.rank(young_since_s) == oldest(connections)
        for each_stage in Stage:
            members = [each for each in connections if each.stage is each_stage]
            assert list(order.in_stage(each_stage)) == sorted(members, key=lambda each: each.since_s)


def test_the_order_of_many_connections_costs_no_more_than_that_of_few() -> None:
    """Counts the comparisons: a flood asks at each new connection."""
    compared = Counter[int]()

    class Counted(Connection):
        def rank(self, young_since_s: float) -> tuple[Stage, float]:
            compared[total] += 1
            return super().rank(young_since_s)

    for total in (100, 10_000):
        order = ClosingOrder(total)
        for number in range(total):
            order.add(Counted(address=f"10.0.{number % 50}.1", since_s=number))
        order.first(total)
    assert compared[10_000] == compared[100] > 0
