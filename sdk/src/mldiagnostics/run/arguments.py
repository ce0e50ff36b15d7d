"""What the program said when it began a run: checked, completed by the environment, no reason to fail; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.configs.jsonable import jsonable
from mldiagnostics.configs.kinds import (
    AcceleratorOrchestrator,
    ApplicationFramework,
    Framework,
    RlOrchestrator,
    ServingEngine,
)
from mldiagnostics.run.settings import ON_FULL
from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from mldiagnostics.run.settings import OnFull, RunSettings

DEFAULT_STORAGE = "mldiagnostics"
DEFAULT_SINKS = ("jsonl:",)
ENVIRONMENTS = ("autopush", "staging", "prod")
_REGION = re.compile(r"([a-z]+(?:-[a-z]+)+\d+)(?:-[a-z])?")
_EXPORTERS = {"cloud_logging": "cloud-logging:", "otel": "otlp:"}
"""Google's names for where metrics go -> our sinks."""

_Member = TypeVar("_Member", bound=Enum)


@dataclass(frozen=True, slots=True)
class RunArguments:
    """The parameters of `machinelearning_run`, each of its own type; empty or None where nothing was said.

    `storage` is the root for all runs as it was named; empty means that nobody named one.
    """

    name: str
    run_group: str
    configs: Mapping[str, Any]
    storage: str
    gcs_path: str | None
    base_url: str | None
    cluster_id: str | None
    project: str | None
    region: str | None
    metrics_record_interval_s: float
    on_demand_xprof: bool
    log_system_metrics: bool
    environment: str
    framework: Framework
    serving_engine: ServingEngine
    run_workload_id: str | None
    metric_only_run: bool
    metrics_exporter_config: Mapping[str, Any] | None
    accelerator_orchestrator: AcceleratorOrchestrator
    application_framework: ApplicationFramework
    rl_orchestrator: RlOrchestrator
    sinks: tuple[str, ...]
    on_full: OnFull


def read_arguments(
    said: Mapping[str, Any], *, settings: RunSettings, platforms: str, problems: dict[str, str]
) -> RunArguments:
    """Check what was `said`, by parameter; `problems` takes a sentence for each one that cannot be meant.

    `platforms` is `JAX_PLATFORMS`.
    """
    read = _ArgumentReader(said, problems)
    gcs_path = normalized_location(read.text("gcs_path") or "") or None
    storage = normalized_location(read.text("storage") or "") or gcs_path or settings.storage
    if read.text("environment", "prod") not in ENVIRONMENTS:
        read.complain("environment", f"is none of {', '.join(ENVIRONMENTS)}; prod is meant")
    orchestrator = read.member("accelerator_orchestrator", AcceleratorOrchestrator.NONE)
    if "proxy" in platforms or "pathways" in platforms:
        orchestrator = AcceleratorOrchestrator.PATHWAYS
    return RunArguments(
        name=read.name(),
        run_group=read.text("run_group") or "",
        configs=read.configs(),
        storage=read.location(storage),
        gcs_path=gcs_path,
        base_url=read.text("base_url"),
        cluster_id=read.text("cluster_id"),
        project=read.text("project"),
        region=read.region(),
        metrics_record_interval_s=read.seconds("metrics_record_interval_sec", 10.0),
        on_demand_xprof=read.flag("on_demand_xprof", default=False),
        log_system_metrics=read.flag("log_system_metrics", default=True),
        environment=str(said.get("environment")) if said.get("environment") in ENVIRONMENTS else "prod",
        framework=read.member("framework", Framework.DETECT),
        serving_engine=read.member("serving_engine", ServingEngine.NONE),
        run_workload_id=read.text("run_workload_id"),
        metric_only_run=read.flag("metric_only_run", default=False),
        metrics_exporter_config=read.exporters(),
        accelerator_orchestrator=orchestrator,
        application_framework=read.member("application_framework", ApplicationFramework.NONE),
        rl_orchestrator=read.member("rl_orchestrator", RlOrchestrator.NONE),
        sinks=read.sinks() or _exporter_sinks(read.exporters(), problems) or settings.sinks or DEFAULT_SINKS,
        on_full=read.on_full() or settings.on_full,
    )


def normalized_location(location: str) -> str:
    """Return a path or URL without repeated or trailing slashes; the `//` of a URL and a lone `/` stay."""
    scheme, separator, rest = location.strip().rpartition("://")
    cut = re.sub(r"/{2,}", "/", rest)
    return f"{scheme}{separator}{cut if cut == '/' else cut.rstrip('/')}"


normalize_gcs_path = normalized_location
"""The name in Google's SDK."""


class _ArgumentReader:
    """Values of parameters by type; what is of another type counts as not said, and as a problem."""

    def __init__(self, said: Mapping[str, Any], problems: dict[str, str]) -> None:
        self._said = said
        self._problems = problems

    def complain(self, parameter: str, what: str) -> None:
        self._problems[parameter] = f"machinelearning_run({parameter}={_shown(self._said.get(parameter))}) {what}"

    def name(self) -> str:
        name = self._said.get("name")
        if isinstance(name, str) and name.strip():
            return name
        if isinstance(name, int | float | Enum | PurePath) and not isinstance(name, bool):
            text = str(name.value if isinstance(name, Enum) else name)
            self.complain("name", f"is not a text; {text!r} is used")
            return text
        self.complain("name", "is not a name; give the run a text that is not empty; 'run' is used")
        return "run"

    def text(self, parameter: str, default: str | None = None) -> str | None:
        value = self._said.get(parameter)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            return value
        if hasattr(value, "__fspath__"):
            return str(value.__fspath__())
        self.complain(parameter, "is no text and is ignored")
        return default

    def flag(self, parameter: str, *, default: bool) -> bool:
        value = self._said.get(parameter)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.complain(parameter, f"is neither True nor False; {default} is used")
        return default

    def seconds(self, parameter: str, default: float) -> float:
        value = self._said.get(parameter)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124 - not NaN
            return float(value)
        if value is not None:
            self.complain(parameter, f"is no number of seconds; {default:g} is used")
        return default

    def member(self, parameter: str, default: _Member) -> _Member:
        """Return a member of an enumeration, given as itself or by its name in any case."""
        value = self._said.get(parameter)
        kind = type(default)
        name = value.name if isinstance(value, Enum) else value
        for member in kind:
            if value is member or (isinstance(name, str) and name.upper() == member.name):
                return member
        if value is not None:
            self.complain(parameter, f"is none of {', '.join(m.name for m in kind)}; {default.name} is used")
        return default

    def region(self) -> str | None:
        value = self.text("region")
        if value is None:
            return None
        found = _REGION.fullmatch(value.strip())
        if not found:
            self.complain(
                "region", "is neither a region like us-central1 nor a zone like us-central1-a; it is looked up"
            )
            return None
        return found[1]

    def configs(self) -> Mapping[str, Any]:
        value = self._said.get("configs")
        if value is None or isinstance(value, Mapping):
            return value or {}
        plain = jsonable(value)  # a dataclass, a namespace, the configuration object of a framework
        if isinstance(plain, Mapping):
            return plain
        self.complain("configs", "is no dictionary; it is kept as the text 'value'")
        return {"value": plain}

    def location(self, location: str) -> str:
        scheme, separator, _ = location.partition("://")
        if separator and scheme not in {"gs", "file"}:
            parameter = "storage" if self._said.get("storage") else "gcs_path"
            self.complain(
                parameter,
                f"or MLDIAG_STORAGE: {location!r} is no place that can be written: give a path, "
                f"file:///… or gs://bucket/prefix; ./{DEFAULT_STORAGE} is used",
            )
            return ""
        return location

    def sinks(self) -> tuple[str, ...]:
        value = self._said.get("sinks")
        if value is None:
            return ()
        if isinstance(value, str):
            return split_sinks(value)
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return split_sinks(",".join(value))
        self.complain("sinks", "is not a list of URLs and is ignored; write sinks=['jsonl:', 'stdout:']")
        return ()

    def on_full(self) -> OnFull | None:
        value = self._said.get("on_full")
        if value is not None and value not in ON_FULL:
            self.complain("on_full", "is neither 'drop' nor 'wait' and is ignored")
        return ON_FULL.get(str(value))

    def exporters(self) -> Mapping[str, Any] | None:
        value = self._said.get("metrics_exporter_config")
        if value is None or isinstance(value, Mapping):
            return value
        self.complain("metrics_exporter_config", "is no dictionary and is ignored")
        return None


def _exporter_sinks(config: Mapping[str, Any] | None, problems: dict[str, str]) -> tuple[str, ...]:
    """Return the sinks for Google's `metrics_exporter_config`, whose keys are `mode` and `userConfig`."""
    found: dict[str, None] = {}
    for key in ("mode", "userConfig"):
        names = (config or {}).get(key) or ()
        for name in (names,) if isinstance(names, str) else names if isinstance(names, Iterable) else ():
            sink = _EXPORTERS.get(str(name).lower())
            if sink is None:
                problems["metrics_exporter_config"] = (
                    f"metrics_exporter_config: {name!r} is none of {', '.join(_EXPORTERS)} and is ignored"
                )
            else:
                found[sink] = None
    return tuple(found)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - it is the user's own
        return f"<{type(value).__name__}>"
    return text if len(text) <= 100 else f"{text[:99]}…"
