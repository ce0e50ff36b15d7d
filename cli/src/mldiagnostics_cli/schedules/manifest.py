"""The object of a schedule from the options of a command; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_api.schedules.template import rules_of
from mldiagnostics_api.schedules.timing import parse_period
from mldiagnostics_api.schedules.triggers import TriggerType
from mldiagnostics_api.v1alpha1.schedule import read_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.schedules.decision import ScheduleRules


_UNCREATED: Final = {"namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleArguments:
    """The options of `mldiag schedules create`."""

    name: str
    every: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    jitter_s: int | None = None
    triggers: Sequence[str] = ()
    """Each is `Type` or `Type=PERCENT`."""
    run: str | None = None
    workload: str | None = None
    """`KIND/NAME`."""
    labels: Sequence[str] = ()
    """Each is `key=value`."""
    duration_ms: int | None = None
    ranks: str | None = None
    pulse: bool | None = None
    per_run: int | None = None
    per_day: int | None = None
    interval_s: int | None = None


def manifest(arguments: ScheduleArguments) -> dict[str, Any]:
    """Return the object to create.

    Raises:
        ConfigurationError: An option is not valid.
    """
    body = _body(arguments)
    _rules(body)
    return body


def rules(arguments: ScheduleArguments) -> ScheduleRules:
    """Return the rules of a schedule that is not created.

    Raises:
        ConfigurationError: An option is not valid.
    """
    return _rules(_body(arguments))


def _rules(body: dict[str, Any]) -> ScheduleRules:
    try:
        return rules_of(read_schedule({**body, "metadata": {**body["metadata"], **_UNCREATED}}))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _body(arguments: ScheduleArguments) -> dict[str, Any]:
    spec = {
        "target": _target(arguments),
        "schedule": _given(
            every=arguments.every,
            cron=arguments.cron,
            timeZone=arguments.time_zone,
            jitterSeconds=arguments.jitter_s,
        ),
        "triggers": [_trigger(each) for each in arguments.triggers],
        "capture": _given(durationMilliseconds=arguments.duration_ms, ranks=arguments.ranks, pulse=arguments.pulse),
        "budget": _given(
            capturesPerRun=arguments.per_run,
            captures=arguments.per_day,
            minimumIntervalSeconds=arguments.interval_s,
        ),
    }
    body: dict[str, Any] = {
        "apiVersion": SCHEDULES.api_version,
        "kind": SCHEDULES.kind,
        "metadata": {"name": arguments.name},
        "spec": {key: value for key, value in spec.items() if value},
    }
    if not arguments.triggers and not arguments.every and not arguments.cron:
        raise ConfigurationError(
            "no --every, --cron or --trigger: a schedule needs one of them; for example --every 6h"
        )
    if arguments.every and arguments.cron:
        raise ConfigurationError("--every and --cron: both are given; pass only one of them")
    if arguments.every:
        try:
            parse_period(arguments.every)
        except ValueError as error:
            raise ConfigurationError(f"--{error}") from None
    return body


def _target(arguments: ScheduleArguments) -> dict[str, Any]:
    given = [each for each in (arguments.run, arguments.workload, arguments.labels) if each]
    if len(given) > 1:
        raise ConfigurationError("--run, --workload and --label: more than one kind is given; pass only one of them")
    if arguments.run:
        return {"runRef": {"name": arguments.run}}
    if arguments.workload:
        return {"workloadRef": _workload(arguments.workload)}
    labels = dict(_pair(each) for each in arguments.labels)
    return {"matchLabels": labels} if labels else {}


def _workload(text: str) -> dict[str, str]:
    from mldiagnostics_cli.cluster.objects import ObjectName  # noqa: PLC0415 - only with this option

    named = ObjectName.parse(text)
    return {"kind": named.kind.kind, "name": named.name}


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"--label {text!r}: is not key=value; write for example diagon.gke.io/run-group=llm")
    return key, value


def _trigger(text: str) -> dict[str, Any]:
    kind, separator, percent = text.partition("=")
    if kind not in list(TriggerType):
        raise ConfigurationError(f"--trigger {text!r}: no such trigger; use one of {', '.join(TriggerType)}")
    if not separator:
        return {"type": kind}
    if not percent.isascii() or not percent.isdigit():
        raise ConfigurationError(f"--trigger {text!r}: the limit is not a whole percentage; write {kind}=20")
    return {"type": kind, "thresholdPercent": int(percent)}


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
