"""Settings of a process, read from its environment.

A settings class is a dataclass whose fields are annotated with a `Setting`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar, get_type_hints

from mldiagnostics.errors import ConfigurationError

T = TypeVar("T")

_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_WEB_URL: Final = re.compile(r"https?://[^/?#\s][^?#\s]*")
_SWITCH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """The environment variable of a field."""

    variable: str
    meaning: str
    """Text of the reference page."""
    parse: Callable[[str], Any] = str
    """Reads the value. Raises ValueError with a text that follows the value: `is not a port; use 0 to 65535`."""


def declared(config: type[object]) -> dict[str, Setting]:
    """Map the field names of a settings class to their settings."""
    hints = get_type_hints(config, include_extras=True)
    return {name: annotation.__metadata__[0] for name, annotation in hints.items()}


@dataclass(frozen=True, slots=True)
class SettingsReader(Generic[T]):
    """Reads a settings class from the environment, and writes its reference page."""

    config: type[T]
    """The settings class; every field has a default."""
    title: str
    """Of the reference page."""
    module: str
    """Writes the reference page."""
    invalid: str
    """First words of the message about invalid settings."""
    conflicts: Callable[[T], list[str]] = lambda _: []
    """Returns a message for each group of values that do not fit together."""

    def load(self, environ: Mapping[str, str]) -> T:
        """Read the settings; an unset or empty variable means its default.

        Raises:
            ConfigurationError: With all problems, not only the first.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        for name, setting in declared(self.config).items():
            raw = environ.get(setting.variable, "").strip()
            if not raw:
                continue
            try:
                values[name] = setting.parse(raw)
            except ValueError as fault:
                problems.append(f"{setting.variable}: {raw!r} {fault}")
        config = self.config(**values)
        problems += self.conflicts(config)
        if problems:
            raise ConfigurationError(f"{self.invalid}: " + "; ".join(problems))
        return config

    def reference(self) -> str:
        """Return the reference page of the variables as Markdown."""
        defaults = self.config()
        rows = [
            f"| `{setting.variable}` | {_format(getattr(defaults, name))} | {setting.meaning} |"
            for name, setting in declared(self.config).items()
        ]
        return "\n".join(
            [
                f"# {self.title}",
                "",
                f"Written by `python -m {self.module}`; do not edit. The chart sets these from its values.",
                "",
                "| variable | default | meaning |",
                "|---|---|---|",
                *rows,
                "",
            ]
        )


def web_url(raw: str) -> str:
    """Check an http(s) URL without query; return it without slashes at its end."""
    if not _WEB_URL.fullmatch(raw):
        raise ValueError("is not an http(s) URL; write it like https://view.example.com")
    return raw.rstrip("/")


def dns_name(raw: str) -> str:
    """Parse the name of a Kubernetes object."""
    if not _DNS_NAME.fullmatch(raw):
        raise ValueError("is not a Kubernetes name; use lower-case letters, digits, '-' and '.'")
    return raw


def dns_names(raw: str) -> tuple[str, ...]:
    """Parse comma-separated names of Kubernetes objects; sort them, each once."""
    return tuple(sorted({dns_name(part.strip()) for part in raw.split(",") if part.strip()}))


def port(raw: str) -> int:
    """Parse a port; 0 lets the system choose."""
    if not raw.isascii() or not raw.isdigit() or not 0 <= int(raw) <= 65535:
        raise ValueError("is not a port; use a number from 0 to 65535")
    return int(raw)


def seconds(raw: str) -> float:
    """Parse a duration in seconds of less than a day."""
    try:
        time_s = float(raw)
    except ValueError:
        time_s = 0.0
    if not 0 < time_s < 86400:
        raise ValueError("is not a number of seconds; use more than 0 and less than 86400")
    return time_s


def whole_number(raw: str) -> int:
    """Parse a whole number of at least 0."""
    if not raw.isascii() or not raw.isdigit() or len(raw) > 10:
        raise ValueError("is not a whole number; use 0 or more")
    return int(raw)


def switch(raw: str) -> bool:
    """Parse `true` or `false`."""
    if raw.lower() not in _SWITCH:
        raise ValueError("is not a switch; use 'true' or 'false'")
    return _SWITCH[raw.lower()]


def _log_level(raw: str) -> str:
    """Parse the name of a log level."""
    if raw.upper() not in _LOG_LEVELS:
        raise ValueError(f"is not a log level; use one of {', '.join(_LOG_LEVELS)}")
    return raw.upper()


LogLevel: TypeAlias = Annotated[str, Setting("MLDIAG_LOG_LEVEL", f"One of {', '.join(_LOG_LEVELS)}.", _log_level)]


def absolute_path(raw: str) -> Path:
    """Parse an absolute path."""
    path = Path(raw)
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError("is not an absolute path without '..'")
    return path


def _format(default: object) -> str:
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{default}`" if isinstance(default, str | int | Path) and default != "" else "(empty)"
