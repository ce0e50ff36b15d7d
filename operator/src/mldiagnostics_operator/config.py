"""What the operator is told by its environment: parsed once, every fault reported at once."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.policy import Policy

_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_SWITCH: Final = {"true": True, "false": False}


def _name(raw: str) -> str:
    if not _DNS_NAME.fullmatch(raw):
        raise ValueError("is no Kubernetes name (lower-case letters, digits, '-' and '.')")
    return raw


def _names(raw: str) -> tuple[str, ...]:
    return tuple(sorted({_name(part.strip()) for part in raw.split(",") if part.strip()}))


def _port(raw: str) -> int:
    if not raw.isascii() or not raw.isdigit() or not 0 <= int(raw) <= 65535:
        raise ValueError("is no port (0 to 65535)")
    return int(raw)


def _seconds(raw: str) -> float:
    try:
        seconds = float(raw)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86400:
        raise ValueError("is no number of seconds (more than 0, less than a day)")
    return seconds


def _switch(raw: str) -> bool:
    if raw.lower() not in _SWITCH:
        raise ValueError("is neither 'true' nor 'false'")
    return _SWITCH[raw.lower()]


def _level(raw: str) -> str:
    if raw.upper() not in _LOG_LEVELS:
        raise ValueError(f"is none of {', '.join(_LOG_LEVELS)}")
    return raw.upper()


def _absolute(raw: str) -> Path:
    path = Path(raw)
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError("is no absolute path without '..'")
    return path


def _policy(raw: str) -> Policy:
    try:
        document = _absolute(raw).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        raise ValueError(f"cannot be read: {unreadable}") from unreadable
    try:
        return Policy.parse(document)
    except ValueError as fault:
        raise ValueError(f"holds a bad policy: {fault}") from fault


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a field of Config comes from, what it means and how its text is read."""

    variable: str
    meaning: str
    parse: Callable[[str], Any] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The operator's settings; each field names its environment variable."""

    pod_name: Annotated[str, Setting("POD_NAME", "Name of this pod (fieldRef).", _name)] = "local"
    pod_namespace: Annotated[
        str, Setting("POD_NAMESPACE", "Namespace of this pod (fieldRef): the Lease lives here.", _name)
    ] = "default"
    pod_uid: Annotated[str, Setting("POD_UID", "Uid of this pod (fieldRef). Empty outside a cluster.")] = ""
    cluster_name: Annotated[
        str,
        Setting(
            "MLDIAG_CLUSTER_NAME",
            "Name of the cluster, part of every run id. Empty: GKE's metadata server is asked, "
            "else `k8s-` and the first 8 hex digits of the uid of namespace `kube-system`.",
        ),
    ] = ""
    policy: Annotated[
        Policy,
        Setting(
            "MLDIAG_POLICY_FILE",
            "JSON file with the administrator's limits and allow-lists. Empty: the built-in limits.",
            _policy,
        ),
    ] = field(default_factory=Policy)
    volume_root: Annotated[
        Path,
        Setting(
            "MLDIAG_VOLUME_ROOT",
            "Directory where the operator's volume is mounted: `volume:///x` is `x` below it.",
            _absolute,
        ),
    ] = Path("/var/lib/mldiagnostics")
    watch_namespaces: Annotated[
        tuple[str, ...],
        Setting("MLDIAG_WATCH_NAMESPACES", "Comma-separated namespaces whose captures are served. Empty: all.", _names),
    ] = ()
    http_port: Annotated[
        int,
        Setting("MLDIAG_HTTP_PORT", "Port of `/healthz`, `/readyz` and `/metrics`; 0 lets the system choose.", _port),
    ] = 8081
    log_level: Annotated[str, Setting("MLDIAG_LOG_LEVEL", f"One of {', '.join(_LOG_LEVELS)}.", _level)] = "INFO"
    lease_name: Annotated[str, Setting("MLDIAG_LEASE_NAME", "Name of the Lease that elects the leader.", _name)] = (
        "mldiagnostics-connection-operator"
    )
    lease_duration_s: Annotated[
        float, Setting("MLDIAG_LEASE_DURATION_SECONDS", "How long a silent leader keeps the Lease.", _seconds)
    ] = 15.0
    lease_renew_deadline_s: Annotated[
        float,
        Setting(
            "MLDIAG_LEASE_RENEW_DEADLINE_SECONDS",
            "How long a leader tries to renew before it stands back; less than the duration.",
            _seconds,
        ),
    ] = 10.0
    lease_retry_s: Annotated[
        float,
        Setting(
            "MLDIAG_LEASE_RETRY_SECONDS",
            "Pause between two looks at the Lease; less than half of the renew deadline.",
            _seconds,
        ),
    ] = 2.0
    shutdown_grace_s: Annotated[
        float,
        Setting(
            "MLDIAG_SHUTDOWN_GRACE_SECONDS",
            "How long running captures may finish after SIGTERM; less than `terminationGracePeriodSeconds`.",
            _seconds,
        ),
    ] = 200.0
    ignore_managed_addon: Annotated[
        bool,
        Setting(
            "MLDIAG_IGNORE_MANAGED_ADDON",
            "`true`: capture even where GKE's managed add-on owns the same resource.",
            _switch,
        ),
    ] = False

    def holder(self, process: str) -> str:
        """Name this process in Leases and in the status of captures: `<pod name>/<pod uid>/<process>`."""
        return f"{self.pod_name}/{self.pod_uid}/{process}"


def settings() -> dict[str, Setting]:
    """Field name of Config -> where it comes from."""
    hints = get_type_hints(Config, include_extras=True)
    return {name: annotation.__metadata__[0] for name, annotation in hints.items()}


def load(environ: Mapping[str, str]) -> Config:
    """Read the settings; an unset or empty variable means its default.

    Raises ConfigurationError that lists every fault, not only the first.
    """
    values: dict[str, Any] = {}
    faults: list[str] = []
    for name, setting in settings().items():
        raw = environ.get(setting.variable, "").strip()
        if not raw:
            continue
        try:
            values[name] = setting.parse(raw)
        except ValueError as fault:
            faults.append(f"{setting.variable}={raw!r} {fault}")
    config = Config(**values)
    if not config.lease_duration_s > config.lease_renew_deadline_s > 2 * config.lease_retry_s:
        faults.append(
            "the Lease's times must obey duration > renew deadline > 2 x retry, they are "
            f"{config.lease_duration_s:g}, {config.lease_renew_deadline_s:g} and {config.lease_retry_s:g} s"
        )
    if faults:
        raise ConfigurationError("The operator's environment is wrong: " + "; ".join(faults))
    return config


def reference() -> str:
    """Write the reference page of the variables (Markdown)."""
    defaults = Config()
    rows = [
        f"| `{setting.variable}` | {_shown(getattr(defaults, name))} | {setting.meaning} |"
        for name, setting in settings().items()
    ]
    return "\n".join(
        [
            "# Environment of the operator",
            "",
            "Written by `python -m mldiagnostics_operator.config`; do not edit. The chart sets these from its values.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{default}`" if isinstance(default, str | int | Path) and default != "" else "(empty)"


if __name__ == "__main__":
    sys.stdout.write(reference())
