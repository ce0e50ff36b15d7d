"""The share of each namespace in the objects that reports create."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.runs import reported_quota
from mldiagnostics_operator.runs.reported_quota import WINDOW_S, ReportedRunQuota

STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.floats(0, WINDOW_S / 3), st.integers(0, 3)), min_size=1, max_size=60
)


@given(STEPS)
def test_no_namespace_exceeds_its_share_in_any_window(steps: list[tuple[str, float, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reported_quota, "MAX_UNFINISHED", 5)
        patch.setattr(reported_quota, "MAX_CREATED", 7)
        quota, unfinished, now_s = ReportedRunQuota(), Counter[str](), 0.0
        created: list[tuple[str, float]] = []
        for namespace, passed_s, ended in steps:
            now_s += passed_s
            unfinished[namespace] = max(0, unfinished[namespace] - ended)
            quota.recount(unfinished.elements(), now_s)
            recent = Counter(name for name, at in created if at > now_s - WINDOW_S)
            has_room = unfinished[namespace] < 5 and recent[namespace] < 7
            assert quota.admits(namespace) == has_room
            if has_room:
                quota.note_created(namespace, now_s)
                unfinished[namespace] += 1
                created.append((namespace, now_s))


def test_an_excess_is_named_once_in_a_window() -> None:
    quota = ReportedRunQuota()
    assert [quota.is_first_excess("ml", 0.0), quota.is_first_excess("ml", 1.0)] == [True, False]
    assert quota.is_first_excess("other", 1.0)
    quota.recount((), WINDOW_S)
    assert quota.is_first_excess("ml", WINDOW_S)
