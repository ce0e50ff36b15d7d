"""Colours of the buckets, distinct in any colour vision; pure.

Productive time is bluish green and lost time vermilion, as in Okabe & Ito's palette. Related buckets have neighbouring
hues: starting in blues, checkpoints in browns, custom events in pinks. The cost of disruptions is hatched.
"""

from __future__ import annotations

from typing import NamedTuple

PRODUCTIVE = "PRODUCTIVE"


class BucketStyle(NamedTuple):
    """Colours of a bucket on light and dark backgrounds."""

    light: str
    dark: str
    hatched: bool = False


PAINTS = {
    PRODUCTIVE: BucketStyle("#14967a", "#2bb796"),
    "TPU_INITIALIZATION": BucketStyle("#0c277b", "#256ee2"),
    "TRAINING_PREP": BucketStyle("#91b3fc", "#64dbfb"),
    "PROGRAM_STARTUP": BucketStyle("#7d3fd0", "#988de6"),
    "DATA_LOADING_SYNC": BucketStyle("#ea880f", "#f69518"),
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": BucketStyle("#705133", "#7b6747"),
    "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": BucketStyle("#cd935e", "#f1e3c6"),
    "WASTED_PROGRESS_FROM_DISRUPTION": BucketStyle("#d9541e", "#f0743f", hatched=True),
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": BucketStyle("#4e1230", "#763352", hatched=True),
    "OTHER": BucketStyle("#9ca2a5", "#59626c"),
    "ELASTIC_SLICE_DOWN": BucketStyle("#316a94", "#3b5989", hatched=True),
    "ELASTIC_SCALE_UP": BucketStyle("#61686b", "#848f97", hatched=True),
    "ELASTIC_REINITIALIZATION": BucketStyle("#83a7bd", "#c5e0f1", hatched=True),
}
"""Buckets in the order of bars."""

CUSTOM = (BucketStyle("#c34eb0", "#cf7cba"), BucketStyle("#dbaed3", "#efbbcc"), BucketStyle("#7d205f", "#af37a0"))
"""Custom events share three colours by their type."""


def paint(bucket: str) -> BucketStyle:
    """Return the style of a bucket."""
    return PAINTS.get(bucket) or CUSTOM[sum(bucket.encode()) % len(CUSTOM)]
