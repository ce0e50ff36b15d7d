"""Names and colours of the buckets as JSON, for the page of the view; pure.

`python -m mldiagnostics.goodput.render.causes` prints view/web/src/causes.json.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mldiagnostics.goodput.render.palette import CUSTOM, PAINTS, PRODUCTIVE
from mldiagnostics.goodput.render.words import label


def causes_document() -> dict[str, Any]:
    """Return the buckets in the order of bars, and the colours of custom events."""
    causes = [
        {"cause": _cause(bucket), "name": label(bucket), "light": style.light, "dark": style.dark}
        for bucket, style in PAINTS.items()
    ]
    return {"causes": causes, "custom": [{"light": style.light, "dark": style.dark} for style in CUSTOM]}


def _cause(bucket: str) -> str:
    """Return the key of a bucket in accounts."""
    return "productive" if bucket == PRODUCTIVE else bucket


if __name__ == "__main__":
    sys.stdout.write(json.dumps(causes_document(), indent=2) + "\n")
