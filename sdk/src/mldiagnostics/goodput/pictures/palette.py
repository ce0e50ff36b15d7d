"""Colours of the buckets: told apart without red and green, and what was lost is hatched too; pure.

Productive time is bluish green and what disruptions cost vermilion and purple, as in Okabe & Ito's palette; what
belongs together is neighbouring in hue: starting in blues, checkpoints in browns, elastic waits in slate.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PRODUCTIVE", "Paint", "paint"]

PRODUCTIVE = "PRODUCTIVE"


class Paint(NamedTuple):
    """How a bucket is drawn, on light and on dark ground."""

    light: str
    dark: str
    hatched: bool = False


_PAINTS = {
    PRODUCTIVE: Paint("#14967a", "#2bb796"),
    "TPU_INITIALIZATION": Paint("#1c5fa8", "#4a90d9"),
    "TRAINING_PREP": Paint("#5aa0dc", "#86c0f0"),
    "PROGRAM_STARTUP": Paint("#7a68c8", "#a497ea"),
    "DATA_LOADING_SYNC": Paint("#e3b20b", "#f2cf52"),
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": Paint("#8a5a3c", "#b98462"),
    "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": Paint("#c79a78", "#dcb89c"),
    "WASTED_PROGRESS_FROM_DISRUPTION": Paint("#d9541e", "#f0743f", hatched=True),
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": Paint("#7d2553", "#b8558b", hatched=True),
    "OTHER": Paint("#a3a9b1", "#6c737d"),
    "ELASTIC_SLICE_DOWN": Paint("#3d5a6c", "#6f94aa"),
    "ELASTIC_SCALE_UP": Paint("#6b8fa3", "#94b5c7"),
    "ELASTIC_REINITIALIZATION": Paint("#93b1bf", "#b9d0db"),
}
_CUSTOM = (Paint("#d777b0", "#e79ac8"), Paint("#e8aed0", "#f3cbe2"), Paint("#b0508c", "#cc77ae"))


def paint(bucket: str) -> Paint:
    """Return how a bucket is drawn; types of custom events share three colours and keep theirs in every picture."""
    return _PAINTS.get(bucket) or _CUSTOM[sum(bucket.encode()) % len(_CUSTOM)]
