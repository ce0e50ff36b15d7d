"""Settings of a process out of its environment: declared at each field, parsed once, every fault told at once."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

T = TypeVar("T")

LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SWITCH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a field comes from, what it means and how its text is read (ValueError: why it cannot be)."""

    variable: str
    meaning: str
    parse: Callable[[str], Any] = str


def declared(config: type[object]) -> dict[str, Setting]:
    """Field name of a dataclass, whose fields are annotated with a Setting -> that Setting."""
    hints = get_type_hints(config, include_extras=True)
    return {name: annotation.__metadata__[0] for name, annotation in hints.items()}


def read(config: type[T], environ: Mapping[str, str]) -> tuple[T, list[str]]:
    """Build a configuration and list what is wrong; an unset or empty variable means its default, a wrong one too."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for name, setting in declared(config).items():
        raw = environ.get(setting.variable, "").strip()
        if not raw:
            continue
        try:
            values[name] = setting.parse(raw)
        except ValueError as fault:
            faults.append(f"{setting.variable}={raw!r} {fault}")
    return config(**values), faults


def reference(config: type[object], *, title: str, module: str) -> str:
    """Write the reference page of the variables (Markdown)."""
    defaults = config()
    rows = [
        f"| `{setting.variable}` | {_shown(getattr(defaults, name))} | {setting.meaning} |"
        for name, setting in declared(config).items()
    ]
    return "\n".join(
        [
            f"# {title}",
            "",
            f"Written by `python -m {module}`; do not edit. The chart sets these from its values.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def dns_name(raw: str) -> str:
    """Read a name of Kubernetes."""
    if not _DNS_NAME.fullmatch(raw):
        raise ValueError("is no Kubernetes name (lower-case letters, digits, '-' and '.')")
    return raw


def dns_names(raw: str) -> tuple[str, ...]:
    """Read names of Kubernetes, separated by commas; sorted, each once."""
    return tuple(sorted({dns_name(part.strip()) for part in raw.split(",") if part.strip()}))


def port(raw: str) -> int:
    """Read a port; 0 lets the system choose."""
    if not raw.isascii() or not raw.isdigit() or not 0 <= int(raw) <= 65535:
        raise ValueError("is no port (0 to 65535)")
    return int(raw)


def seconds(raw: str) -> float:
    """Read a time of less than a day."""
    try:
        time_s = float(raw)
    except ValueError:
        time_s = 0.0
    if not 0 < time_s < 86400:
        raise ValueError("is no number of seconds (more than 0, less than a day)")
    return time_s


def switch(raw: str) -> bool:
    """Read `true` or `false`."""
    if raw.lower() not in _SWITCH:
        raise ValueError("is neither 'true' nor 'false'")
    return _SWITCH[raw.lower()]


def log_level(raw: str) -> str:
    """Read one of LOG_LEVELS."""
    if raw.upper() not in LOG_LEVELS:
        raise ValueError(f"is none of {', '.join(LOG_LEVELS)}")
    return raw.upper()


def absolute_path(raw: str) -> Path:
    """Read an absolute path."""
    path = Path(raw)
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError("is no absolute path without '..'")
    return path


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{default}`" if isinstance(default, str | int | Path) and default != "" else "(empty)"
