"""What a query found, in seconds, before it is told in one of the peer's shapes; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.buckets import BadputType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mldiagnostics.goodput.account import Account

__all__ = ["BASE", "ELASTIC", "GoodputResult", "Unproductive", "answer_of", "nothing_in", "percentages"]

Unproductive: TypeAlias = "dict[BadputType, float | dict[str, float]]"
"""Seconds or per cent by bucket; of CUSTOM_BADPUT_EVENTS by the type of event."""

ELASTIC = (BadputType.ELASTIC_SLICE_DOWN, BadputType.ELASTIC_SCALE_UP, BadputType.ELASTIC_REINITIALIZATION)
BASE = tuple(bucket for bucket in BadputType if bucket not in ELASTIC)
_NOTHING: Unproductive = dict.fromkeys(BASE, 0.0)


@dataclass(frozen=True, slots=True)
class GoodputResult:
    """How much of `elapsed` was productive, and where the rest went."""

    productive: float
    elapsed: float
    unproductive: Unproductive
    max_step: int
    disruptions: int
    excluded: float = 0.0

    @property
    def goodput(self) -> float:
        """The productive share in per cent; of no time at all it is 0."""
        return self.productive / self.elapsed * 100 if self.elapsed else 0.0


def nothing_in(buckets: Iterable[BadputType]) -> Unproductive:
    """Return each of these buckets, empty."""
    return {bucket: {} if bucket is BadputType.CUSTOM_BADPUT_EVENTS else 0.0 for bucket in buckets}


def answer_of(account: Account) -> GoodputResult:
    """Return an exact account in seconds, all base buckets present; without any step the highest one is 0."""
    custom: dict[str, float] = {}
    found: Unproductive = _NOTHING.copy()
    found[BadputType.CUSTOM_BADPUT_EVENTS] = custom
    for (bucket, kind), spent in account.unproductive.items():
        if bucket is BadputType.CUSTOM_BADPUT_EVENTS:
            custom[kind] = spent / 1e6
        else:
            found[bucket] = spent / 1e6
    found[BadputType.DATA_LOADING_ASYNC] = account.overlay / 1e6
    return GoodputResult(
        account.productive / 1e6,
        account.elapsed / 1e6,
        found,
        account.max_step or 0,
        account.disruptions,
        account.excluded / 1e6,
    )


def percentages(unproductive: Mapping[BadputType, float | dict[str, float]], elapsed: float) -> Unproductive:
    """Return buckets in per cent of `elapsed`; nothing is no share of no time."""
    whole = elapsed or math.inf
    return {
        bucket: {kind: each / whole * 100 for kind, each in spent.items()}
        if isinstance(spent, dict)
        else spent / whole * 100
        for bucket, spent in unproductive.items()
    }
