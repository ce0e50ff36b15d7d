"""Results of queries, in seconds and per cent; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.buckets import BadputType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mldiagnostics.goodput.account import Account


UnproductiveTimeDict: TypeAlias = "dict[BadputType, float | dict[str, float]]"
"""Seconds or per cent by bucket; for CUSTOM_BADPUT_EVENTS by the type of event."""

ELASTIC = (BadputType.ELASTIC_SLICE_DOWN, BadputType.ELASTIC_SCALE_UP, BadputType.ELASTIC_REINITIALIZATION)
BASE = tuple(bucket for bucket in BadputType if bucket not in ELASTIC)
_EMPTY: UnproductiveTimeDict = dict.fromkeys(BASE, 0.0)


@dataclass(frozen=True, slots=True)
class GoodputResult:
    """The productive and unproductive seconds of `elapsed`."""

    productive: float
    elapsed: float
    unproductive: UnproductiveTimeDict
    max_step: int
    disruptions: int
    excluded: float = 0.0

    @property
    def goodput(self) -> float:
        """The productive share in per cent; 0 if `elapsed` is 0."""
        return self.productive / self.elapsed * 100 if self.elapsed else 0.0


def empty_buckets(buckets: Iterable[BadputType]) -> UnproductiveTimeDict:
    """Return each of these buckets, without time."""
    return {bucket: {} if bucket is BadputType.CUSTOM_BADPUT_EVENTS else 0.0 for bucket in buckets}


def result_of(account: Account) -> GoodputResult:
    """Return an account in seconds, with all base buckets."""
    custom: dict[str, float] = {}
    seconds: UnproductiveTimeDict = _EMPTY.copy()
    seconds[BadputType.CUSTOM_BADPUT_EVENTS] = custom
    for (bucket, kind), spent in account.unproductive.items():
        if bucket is BadputType.CUSTOM_BADPUT_EVENTS:
            custom[kind] = spent / 1e6
        else:
            seconds[bucket] = spent / 1e6
    seconds[BadputType.DATA_LOADING_ASYNC] = account.overlay / 1e6
    return GoodputResult(
        account.productive / 1e6,
        account.elapsed / 1e6,
        seconds,
        account.max_step or 0,
        account.disruptions,
        account.excluded / 1e6,
    )


def percentages(unproductive: Mapping[BadputType, float | dict[str, float]], elapsed: float) -> UnproductiveTimeDict:
    """Return buckets in per cent of `elapsed`; 0 if `elapsed` is 0."""
    whole = elapsed or math.inf
    return {
        bucket: {kind: each / whole * 100 for kind, each in spent.items()}
        if isinstance(spent, dict)
        else spent / whole * 100
        for bucket, spent in unproductive.items()
    }
