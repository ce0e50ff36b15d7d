"""Kubeconfigs as kubectl reads them: several files as one, and a context of them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    Json = dict[str, Any]

_KINDS: Final = ("clusters", "contexts", "users")


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A cluster, a context or a user, with the folder where its paths start."""

    fields: Json
    folder: Path

    def pem(self, name: str) -> bytes | None:
        """Read a field that is given as data or as a file."""
        if data := self.fields.get(f"{name}-data"):
            return base64.b64decode(data)
        return (self.folder / self.fields[name]).read_bytes() if self.fields.get(name) else None


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A context of a kubeconfig with its cluster and its user."""

    name: str
    namespace: str
    """Empty if the context has none."""
    cluster: KubeconfigEntry
    user: KubeconfigEntry


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or more files; of entries with the same name the first one counts."""

    description: str
    """The files, for messages."""
    current: str
    entries: Mapping[str, Mapping[str, KubeconfigEntry]]

    def context(self, name: str | None = None) -> KubeContext:
        """Return a context, or the current one.

        Raises:
            ConfigurationError: There is no such context, cluster or user; the message has the contexts.
        """
        if not (name or self.current):
            raise ConfigurationError(f"{self.description}: has no current context; {self._choice()}")
        context = self._entry("contexts", name or self.current)
        fields = context.fields
        return KubeContext(
            name or self.current,
            str(fields.get("namespace") or ""),
            self._entry("clusters", str(fields.get("cluster"))),
            self._entry("users", str(fields["user"])) if fields.get("user") else KubeconfigEntry({}, context.folder),
        )

    def _entry(self, kind: str, name: str) -> KubeconfigEntry:
        entry = self.entries[kind].get(name)
        if entry is None:
            raise ConfigurationError(f"{self.description}: has no {kind[:-1]} '{name}'; {self._choice()}")
        return entry

    def _choice(self) -> str:
        names = ", ".join(sorted(self.entries["contexts"]))
        return f"choose one of the contexts: {names}" if names else "add a context"


def load(paths: Iterable[Path]) -> Kubeconfig:
    """Read files as one kubeconfig; of several, those that do not exist are ignored.

    Raises:
        ConfigurationError: A file cannot be read or is not a kubeconfig, or none exists.
    """
    files = list(dict.fromkeys(paths))
    description = f"kubeconfig '{':'.join(map(str, files))}'"
    entries: dict[str, dict[str, KubeconfigEntry]] = {kind: {} for kind in _KINDS}
    current = ""
    for path in files:
        try:
            config = _read(path)
            for kind in _KINDS:
                for entry in config.get(kind) or ():
                    read = KubeconfigEntry(dict(entry[kind[:-1]] or {}), path.parent)
                    entries[kind].setdefault(str(entry["name"]), read)
            current = current or str(config.get("current-context") or "")
        except FileNotFoundError as missing:
            if len(files) == 1:
                raise ConfigurationError(f"{description}: no such file; set KUBECONFIG to an existing one") from missing
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as fault:
            raise ConfigurationError(f"kubeconfig '{path}': cannot be read: {fault}; repair the file") from fault
    return Kubeconfig(description, current, entries)


def _read(path: Path) -> Json:
    import yaml  # noqa: PLC0415 - no process in a cluster needs it

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as fault:
        raise ValueError(f"not YAML: {' '.join(str(fault).split())}") from fault
    if not isinstance(config, dict):
        raise ValueError("not a mapping")  # noqa: TRY004 - the file is wrong, not the program
    return config
