from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.history import PastCapture, leaving

CAPTURES = st.lists(
    st.builds(
        PastCapture,
        name=st.uuids().map(str),
        uid=st.uuids().map(str),
        ended=st.floats(0, 1e9),
        has_findings=st.booleans(),
    ),
    max_size=30,
)


@given(CAPTURES, st.integers(0, 10), st.integers(0, 10))
def test_the_newest_of_both_kinds_stay(captures: list[PastCapture], keep: int, keep_with_findings: int) -> None:
    left = leaving(captures, keep=keep, keep_with_findings=keep_with_findings)
    stay = [each for each in captures if each not in left]
    for has_findings, kept in ((False, keep), (True, keep_with_findings)):
        staying = [each for each in stay if each.has_findings == has_findings]
        leaving_ = [each for each in left if each.has_findings == has_findings]
        assert len(staying) == min(kept, len(staying) + len(leaving_))
        assert all(old.ended <= new.ended for old in leaving_ for new in staying)
