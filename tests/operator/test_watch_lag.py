from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.watch_lag import WatchLag

UIDS = st.sampled_from("abc")


def body(uid: str, version: int) -> dict[str, object]:
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}}


CHANGES = st.lists(st.tuples(UIDS, st.booleans()), max_size=6)
"""Writes and deletions of objects between two comparisons."""


@given(st.lists(st.tuples(CHANGES, st.integers(0, 6)), max_size=8))
def test_a_watch_that_delivers_before_the_next_comparison_never_lags_as_a_property(
    rounds: list[tuple[list[tuple[str, bool]], int]],
) -> None:
    lag, listed, version, late = WatchLag(), dict[str, str](), 0, list[tuple[str, int, str]]()
    gone = set[str]()  # a uid never comes back
    for number, (changes, arrive) in enumerate(rounds):
        events = []
        for uid, deleted in changes:
            if uid in gone:
                continue
            version += 1
            listed[uid] = str(version)
            if deleted:
                del listed[uid]
                gone.add(uid)
            events.append((uid, version, "gone" if deleted else "seen"))
        for uid, seen, event in [*late, *events[:arrive]]:
            lag.observe(body(uid, seen), event)
        late = events[arrive:]
        assert lag.compare(listed, 15.0 * number) == 0.0


@given(st.lists(st.floats(1, 100), min_size=1, max_size=10))
def test_the_lag_of_a_missing_change_grows_as_a_property(pauses: list[float]) -> None:
    lag = WatchLag()
    lag.observe(body("a", 1), "seen")
    assert lag.compare({"a": "1"}, 0.0) == 0.0
    assert lag.compare({"a": "2"}, 0.0) == 0.0
    now = 0.0
    for pause in pauses:
        now += pause
        assert lag.compare({"a": "2", "b": "9"}, now) == now


def test_a_list_that_is_older_than_the_watch_shows_no_lag() -> None:
    lag = WatchLag()
    lag.observe(body("a", 5), "seen")
    assert lag.compare({"a": "4"}, 0.0) == 0.0
    assert lag.compare({"a": "5"}, 15.0) == 0.0


def test_a_delivered_change_restarts_the_count() -> None:
    lag = WatchLag()
    lag.compare({"a": "1"}, 0.0)
    lag.observe(body("a", 1), "seen")
    assert lag.compare({"a": "2"}, 60.0) == 0.0
    assert lag.compare({"a": "3"}, 90.0) == 30.0


def test_an_outage_of_the_server_does_not_count_as_lag() -> None:
    lag = WatchLag()
    lag.compare({"a": "1"}, 0.0)
    lag.reset()
    assert lag.compare({"a": "1"}, 500.0) == 0.0
