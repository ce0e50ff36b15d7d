"""Records as Cloud Logging entries, in the form of Google's SDK and console; pure.

A metric is `{"values": […], "step_index": n, "unit": …, <labels>}` in the log `ml_diagnostics_metric`, its resource a
`generic_node` whose namespace is the metric's name and whose node is the run. A series with one number per device
keeps all of them, with `accelerator_labels` beside it. Format: `google.logging.v2.LogEntry` as JSON; NaN and
infinities are the strings `NaN`, `Infinity` and `-Infinity`, as in protobuf's JSON.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.records import encode, is_goodput
from mldiagnostics.text.strict_json import spelled
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

LOG = "ml_diagnostics_metric"
CONFIGS = "mlrun_configs"
"""Namespace of configurations."""

_RESERVED = frozenset({"values", "step_index", "unit", "accelerator_labels"})
_PER_DEVICE = {"hostname", "accelerator_type"}
_NAMESPACES = {"phase": "run_phase", "session": "profile_sessions", "drop": "dropped_records", "config": CONFIGS}


def entry_of(record: Record, origin: Origin, *, project: str, region: str) -> dict[str, Any] | None:
    """Return a record's entry, None for heartbeats and steps, which would cost money.

    The id of an entry is a hash of its content, so Cloud Logging stores an entry delivered twice only once.
    """
    if record.kind == "heartbeat" or is_goodput(record):
        return None
    severity = "WARNING" if record.kind == "drop" else "INFO"
    if record.kind == "phase" and record.name.upper() == "FAILED":
        severity = "ERROR"
    digest = hashlib.sha256(f"{origin.incarnation} {encode(record)}".encode()).hexdigest()
    return {
        "logName": f"projects/{project}/logs/{LOG}",
        "resource": {
            "type": "generic_node",
            "labels": {
                "project_id": project,
                "location": region,
                "namespace": _NAMESPACES.get(record.kind, record.name),
                "node_id": origin.run_id,
            },
        },
        "timestamp": timestamp(record.t) or timestamp(0),
        "severity": severity,
        "insertId": digest[:32],
        "labels": {
            "run": origin.name,
            "host": origin.host,
            "rank": str(record.rank),
            "attempt": str(record.attempt),
            **({} if origin.slice is None else {"slice": str(origin.slice)}),
        },
        "jsonPayload": _plain(_payload(record)),
    }


def _payload(record: Record) -> dict[str, Any]:
    if record.kind == "config":
        return _configs(record)
    labels = {f"label_{key}" if key in _RESERVED else key: value for key, value in record.labels.items()}
    step = {} if record.step is None else {"step_index": record.step}
    if record.kind != "metric":
        value = {} if record.value is None else {"value": record.value}
        name = {} if record.kind == "event" else {"name": record.name}
        return {**labels, **step, **value, **name, **(record.payload or {})}
    values = record.value if isinstance(record.value, tuple) else (record.value,)
    devices = {}
    if record.labels.keys() >= _PER_DEVICE:
        prefix = f"{record.labels['hostname']}-{record.labels['accelerator_type']}"
        devices = {"accelerator_labels": [f"{prefix}{device}" for device in range(len(values))]}
    return {**labels, "values": list(values), **step, "unit": record.unit, **devices}


def _configs(record: Record) -> dict[str, Any]:
    """Return configurations under Google's names; the user's values are strings."""
    sections = record.payload or {}
    user = sections.get("user")
    rest = {f"{key}Configs": value for key, value in sections.items() if key != "user"}
    texts = {key: str(value) for key, value in user.items()} if isinstance(user, dict) else {}
    return {"userConfigs": texts, **rest, "namespace": CONFIGS}


def _plain(value: Any) -> Any:
    """Return the value without NaN, infinities and lone surrogates."""
    if isinstance(value, float) and not math.isfinite(value):
        return spelled(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
