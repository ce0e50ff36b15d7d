"""Numbers in blocks equal a sorted list after all additions and removals."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st
from mldiagnostics.goodput.ledger.sorted_numbers import SortedNumbers

NUMBERS = st.lists(st.integers(-20, 20) | st.integers(-(2**62), 2**62), max_size=40)


def assert_equal(numbers: SortedNumbers, expected: list[int], probes: list[int]) -> None:
    assert len(numbers) == len(expected)
    places = {0, len(expected) // 3, len(expected) // 2, len(expected) - 1} if expected else set()
    assert [numbers[place] for place in places] == [expected[place] for place in places]
    for probe in probes:
        assert numbers.below(probe) == bisect_left(expected, probe)
        assert numbers.up_to(probe) == bisect_right(expected, probe)
    for count in places | {len(expected)}:
        assert numbers.sum_of_first(count) == sum(expected[:count])


@given(NUMBERS, NUMBERS, st.randoms(use_true_random=False))
@example([], [], Random(1))
def test_sorted_numbers_are_those_of_a_sorted_list(first: list[int], added: list[int], random: Random) -> None:
    numbers, expected = SortedNumbers(array("q", first)), sorted(first)
    for number in added:
        numbers.add(number)
        insort(expected, number)
        assert_equal(numbers, expected, [number, number - 1, number + 1])
    for number in random.sample(expected, len(expected)):
        numbers.remove(number)
        expected.remove(number)
        assert_equal(numbers, expected, [number])


def test_blocks_are_divided_and_vanish() -> None:
    random = Random(3)
    first, added = ([random.randrange(1000) for _ in range(size)] for size in (10_000, 20_000))
    numbers = SortedNumbers(array("q", first))
    for number in added:
        numbers.add(number)
    assert_equal(numbers, sorted(first + added), [*range(-1, 1001, 50)])
    for number in first:
        numbers.remove(number)
    assert_equal(numbers, sorted(added), [*range(-1, 1001, 50)])
    for number in added:
        numbers.remove(number)
    assert_equal(numbers, [], [0])
