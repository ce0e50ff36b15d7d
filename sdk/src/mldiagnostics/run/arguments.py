"""Check the options of a run and complete them from the environment; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.bucket_urls import FORMS
from mldiagnostics.configs.jsonable import jsonable
from mldiagnostics.configs.kinds import (
    AcceleratorOrchestrator,
    ApplicationFramework,
    Framework,
    RlOrchestrator,
    ServingEngine,
)
from mldiagnostics.lifecycle.description import MAX_NOTES, MAX_TAG, MAX_TAGS, fitting_tags
from mldiagnostics.locations import BUCKET_SCHEMES, DEFAULT_STORAGE
from mldiagnostics.run.settings import ON_FULL
from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from mldiagnostics.run.settings import OnFull, RunSettings

DEFAULT_SINKS = ("jsonl:",)
ENVIRONMENTS = ("autopush", "staging", "prod")
_REGION = re.compile(r"([a-z]+(?:-[a-z]+)+\d+)(?:-[a-z])?")
_EXPORTERS = {"cloud_logging": "cloud-logging:", "otel": "otlp:"}
"""Google's name of a destination for metrics -> our sink."""

_Member = TypeVar("_Member", bound=Enum)


@dataclass(frozen=True, slots=True)
class RunArguments:
    """Valid arguments of a run.

    Empty or None where neither the program nor the environment gives a value.

    `storage` is the root for all runs as it was given.
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
    tags: tuple[str, ...]
    notes: str


def read_arguments(
    options: Mapping[str, Any], *, settings: RunSettings, platforms: str, problems: dict[str, str]
) -> RunArguments:
    """Return valid arguments.

    Those of the options, else of the settings, else the defaults.

    Args:
        options: Arguments of any type as the program passed them, by the parameters of `machinelearning_run`. None
            stands for an argument that was not passed.
        settings: Values of the environment.
        platforms: Value of JAX_PLATFORMS.
        problems: Receives a message for each invalid argument, by its name.
    """
    read = _ArgumentReader(options, problems)
    gcs_path = normalized_location(read.text("gcs_path") or "") or None
    storage = normalized_location(read.text("storage") or "") or gcs_path or settings.storage
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
        cluster_id=read.text("cluster_id") or settings.cluster_id or None,
        project=read.text("project"),
        region=read.region(),
        metrics_record_interval_s=read.seconds("metrics_record_interval_sec", 10.0),
        on_demand_xprof=read.flag("on_demand_xprof", default=False),
        log_system_metrics=read.flag("log_system_metrics", default=True),
        environment=read.environment(),
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
        tags=read.tags(),
        notes=read.notes(),
    )


def normalized_location(location: str) -> str:
    """Return a path or URL without repeated or trailing slashes.

    The `//` of a URL and a lone `/` stay.
    """
    scheme, separator, rest = location.strip().rpartition("://")
    cut = re.sub(r"/{2,}", "/", rest)
    return f"{scheme}{separator}{cut if cut == '/' else cut.rstrip('/')}"


normalize_gcs_path = normalized_location
"""The name in Google's SDK."""


class _ArgumentReader:
    """Reads arguments by type.

    A value of another type counts as not given and is reported.
    """

    def __init__(self, options: Mapping[str, Any], problems: dict[str, str]) -> None:
        self._options = options
        self._problems = problems

    def value(self, parameter: str) -> Any:
        return self._options.get(parameter)

    def report(self, parameter: str, problem: str) -> None:
        self._problems[parameter] = f"machinelearning_run({parameter}={_shown(self.value(parameter))}) {problem}"

    def environment(self) -> str:
        environment = self.text("environment", "prod")
        if environment in ENVIRONMENTS:
            return str(environment)
        self.report("environment", f"is not one of {', '.join(ENVIRONMENTS)}; prod is used")
        return "prod"

    def name(self) -> str:
        name = self.value("name")
        if isinstance(name, str) and name.strip():
            return name
        if isinstance(name, int | float | Enum | PurePath) and not isinstance(name, bool):
            text = str(name.value if isinstance(name, Enum) else name)
            self.report("name", f"is not a string; {text!r} is used")
            return text
        self.report("name", "is not a name; pass a string that is not empty; 'run' is used")
        return "run"

    def text(self, parameter: str, default: str | None = None) -> str | None:
        value = self.value(parameter)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            return value
        if hasattr(value, "__fspath__"):
            return str(value.__fspath__())
        self.report(parameter, "is not a string and is ignored")
        return default

    def flag(self, parameter: str, *, default: bool) -> bool:
        value = self.value(parameter)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.report(parameter, f"is not True or False; {default} is used")
        return default

    def seconds(self, parameter: str, default: float) -> float:
        value = self.value(parameter)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124 - not NaN
            return float(value)
        if value is not None:
            self.report(parameter, f"is not a number of seconds; {default:g} is used")
        return default

    def member(self, parameter: str, default: _Member) -> _Member:
        """Return a member of an enumeration, given as such or by name."""
        value = self.value(parameter)
        kind = type(default)
        name = value.name if isinstance(value, Enum) else value
        for member in kind:
            if value is member or (isinstance(name, str) and name.upper() == member.name):
                return member
        if value is not None:
            self.report(parameter, f"is not one of {', '.join(m.name for m in kind)}; {default.name} is used")
        return default

    def region(self) -> str | None:
        value = self.text("region")
        if value is None:
            return None
        match = _REGION.fullmatch(value.strip())
        if not match:
            self.report(
                "region", "is not a region like us-central1 or a zone like us-central1-a; the region is looked up"
            )
            return None
        return match[1]

    def configs(self) -> Mapping[str, Any]:
        value = self.value("configs")
        if value is None or isinstance(value, Mapping):
            return value or {}
        plain = jsonable(value)  # a dataclass, a namespace, the configuration object of a framework
        if isinstance(plain, Mapping):
            return plain
        self.report("configs", "is not a dictionary; it is recorded as the string 'value'")
        return {"value": plain}

    def location(self, location: str) -> str:
        scheme, separator, _ = location.partition("://")
        if separator and scheme not in {*BUCKET_SCHEMES, "file"}:
            parameter = "storage" if self.value("storage") else "gcs_path"
            self.report(
                parameter,
                f"or MLDIAG_STORAGE: {location!r} is not a storage location; ./{DEFAULT_STORAGE} is used; set a path, "
                f"file:///…, {FORMS}",
            )
            return ""
        return location

    def sinks(self) -> tuple[str, ...]:
        value = self.value("sinks")
        if value is None:
            return ()
        if isinstance(value, str):
            return split_sinks(value)
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return split_sinks(",".join(value))
        self.report("sinks", "is not a list of URLs and is ignored; write sinks=['jsonl:', 'stdout:']")
        return ()

    def tags(self) -> tuple[str, ...]:
        value = self.value("tags")
        given = value.split(",") if isinstance(value, str) and value else value or ()
        if not isinstance(given, list | tuple | set | frozenset):
            self.report("tags", "is not a list of texts and is ignored; write tags=['baseline']")
            return ()
        tags, others = fitting_tags(given)
        if others:
            self.report(
                "tags",
                f"has tags that are left out: {', '.join(map(_shown, others[:5]))}; pass at most {MAX_TAGS} texts of "
                f"1 to {MAX_TAG} characters in one line",
            )
        return tags

    def notes(self) -> str:
        text = self.text("notes") or ""
        if len(text) > MAX_NOTES:
            self.report("notes", f"has more than {MAX_NOTES} characters; the rest is cut off")
        return text[:MAX_NOTES]

    def on_full(self) -> OnFull | None:
        value = self.value("on_full")
        if value is not None and value not in ON_FULL:
            self.report("on_full", "is not 'drop' or 'wait' and is ignored")
        return ON_FULL.get(str(value))

    def exporters(self) -> Mapping[str, Any] | None:
        value = self.value("metrics_exporter_config")
        if value is None or isinstance(value, Mapping):
            return value
        self.report("metrics_exporter_config", "is not a dictionary and is ignored")
        return None


def _exporter_sinks(config: Mapping[str, Any] | None, problems: dict[str, str]) -> tuple[str, ...]:
    """Return the sinks of a `metrics_exporter_config` of Google's SDK."""
    sinks: dict[str, None] = {}
    for key in ("mode", "userConfig"):
        names = (config or {}).get(key) or ()
        for name in (names,) if isinstance(names, str) else names if isinstance(names, Iterable) else ():
            sink = _EXPORTERS.get(str(name).lower())
            if sink is None:
                problems["metrics_exporter_config"] = (
                    f"metrics_exporter_config: {name!r} is not one of {', '.join(_EXPORTERS)} and is ignored"
                )
            else:
                sinks[sink] = None
    return tuple(sinks)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the program's own class may raise anything
        return f"<{type(value).__name__}>"
    return text if len(text) <= 100 else f"{text[:99]}…"
