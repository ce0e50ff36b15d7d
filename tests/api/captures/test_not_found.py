from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.not_found import absent_pods, similar

names = st.text("abc-0", min_size=1, max_size=4)


@given(st.lists(names), st.sets(names))
def test_absent_are_exactly_the_names_without_a_pod(named: list[str], present: set[str]) -> None:
    absent = absent_pods(named, present)
    assert [name for name in named if name in absent or name in present] == named
    assert present.isdisjoint(absent)


@given(names, st.sets(names, min_size=1))
def test_suggested_names_exist(name: str, nearby: set[str]) -> None:
    hint = similar(name, nearby)
    suggested = hint.removeprefix("; did you mean ").removeprefix("; the namespace has ").rstrip("?").split(", ")
    assert 1 <= len(suggested) <= 3
    assert nearby.issuperset(suggested)


def test_the_closest_name_comes_first() -> None:
    assert similar("trainr-1", ["web-1", "trainer-0", "trainer-1"]).startswith("; did you mean trainer-1, trainer-0")
    assert similar("x", ["zeta", "eta"]) == "; the namespace has eta, zeta"
    assert similar("x", []) == "; the namespace has none"
