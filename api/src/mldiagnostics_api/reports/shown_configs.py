"""The configurations of a report as a status shows them; pure."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mldiagnostics.configs.jsonable import jsonable

from mldiagnostics_api.v1alpha1.mlrun_status import MAX_CONFIGS

CONFIG_BYTES: Final = 32 * 1024
"""All entries of the configuration in the status; the rest is in the run's files."""
SECTIONS: Final = ("software", "hardware", "user")

_KEY: Final = 200
_VALUE: Final = 1024
_LONGEST: Final = 4 * _VALUE
"""Bytes of JSON that may become a value."""
_SLICE: Final = 4 * 1024
"""Bytes of JSON that are converted within 5 ms."""
_ENTRY: Final = 64
"""Work of an entry without its value, in the same unit."""


@dataclass(frozen=True, slots=True)
class ShownConfigs:
    """Entries as text, secrets redacted."""

    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    omitted: int = 0
    """Entries that are too large for the status."""

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return sum(2 * _ENTRY + len(key) + len(text) for each in self.sections.values() for key, text in each.items())


def shown_configs(sections: Mapping[str, Mapping[str, bytes]]) -> Generator[None, None, ShownConfigs]:
    """Return whole entries within the limits of the status.

    It yields after each slice of work.

    Args:
        sections: The JSON text of each value, by section and name.
    """
    left, omitted, work = CONFIG_BYTES, 0, 0
    kept: dict[str, dict[str, str]] = {}
    for section in SECTIONS:
        chosen = dict[str, str]()
        for key, value in sorted((sections.get(section) or {}).items()):
            text = _text(key, value) if len(chosen) < MAX_CONFIGS else None
            size = 0 if text is None else len(key.encode()) + len(text.encode())
            if text is None or size > left:
                omitted += 1
            else:
                chosen[key], left = text, left - size
            work += _ENTRY + len(value)
            if work > _SLICE:
                work = 0
                yield
        if chosen:
            kept[section] = chosen
    return ShownConfigs(kept, omitted)


def _text(key: str, value: bytes) -> str | None:
    """Return an entry's value as text; None if it is too large or not JSON."""
    if len(key) > _KEY or len(value) > _LONGEST:
        return None
    try:
        entry = jsonable({key: json.loads(bytes(value))})
        shown: Any = entry.popitem()[1] if isinstance(entry, dict) else None
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError, KeyError):
        return None
    return text if len(text) <= _VALUE else None
