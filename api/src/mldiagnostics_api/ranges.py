"""Sets of numbers in a short notation: `0,4-7`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from typing_extensions import override

RANGES_PATTERN = r"^[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*$"
"""Pattern of `Ranges.parse` for schemas; `parse` also requires the lower number first."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """A set of non-negative integers as inclusive, ascending, disjoint spans."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `0,4-7`.

        Raises:
            ValueError: The message quotes the invalid part.
        """
        return cls.of(_span(part) for part in text.replace(" ", "").split(","))

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Self:
        """Merge inclusive spans."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(spans):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.spans)

    @override
    def __str__(self) -> str:
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in self.spans)


def _span(part: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
    if not match:
        raise ValueError(f"'{part}' is not a number or a range such as 4-7")
    low = int(match[1])
    high = int(match[2] or low)
    if high < low:
        raise ValueError(f"the range '{part}' is reversed; write the lower number first")
    return low, high
