"""Parts of several kinds: metadata, references, conditions and the base model."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from mldiagnostics.lifecycle.description import MAX_NOTES, MAX_TAG, MAX_TAGS
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from mldiagnostics_api.names import AUTHOR_ANNOTATION, CAPTURE_REASON_ANNOTATION, RUN_ANNOTATION
from mldiagnostics_api.ranges import RANGES_PATTERN
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS

T = TypeVar("T", bound=BaseModel)

INT32: Final = {"format": "int32"}
INT64: Final = {"format": "int64"}
ATOMIC: Final = {"x-kubernetes-list-type": "atomic"}
LABEL_KEY: Final = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"
LABEL_VALUE: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

Count = Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra=INT32)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra=INT32)]
DaySeconds = Annotated[int, Field(ge=0, le=86_400, json_schema_extra=INT32)]
Port = Annotated[int, Field(ge=1, le=65535, json_schema_extra=INT32)]
Bytes = Annotated[int, Field(ge=0, json_schema_extra=INT64)]
Generation = Annotated[int, Field(json_schema_extra=INT64)]
PositionRanges = Annotated[str, Field(max_length=1024, pattern=RANGES_PATTERN)]
RunId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Text = Annotated[str, Field(max_length=1024)]
Tag = Annotated[str, Field(min_length=1, max_length=MAX_TAG)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS, json_schema_extra=ATOMIC)]
Notes = Annotated[str, Field(max_length=MAX_NOTES)]
Seconds = Annotated[float, Field(ge=0)]
MinimumCaptured = Annotated[
    Annotated[int, Field(ge=1, le=2**31 - 1)] | Annotated[str, Field(pattern=r"^([1-9][0-9]?|100)%$")],
    Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
]


def _rfc3339(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


Time = Annotated[
    AwareDatetime,
    PlainSerializer(_rfc3339, return_type=str, when_used="json"),
    Field(json_schema_extra={"format": "date-time"}),
]


def keyed_by(field: str) -> dict[str, Any]:
    """Return the schema extension of a list whose entries differ in a field."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


def cel_rule(rule: str, message: str, *, field: str | None = None) -> dict[str, str]:
    """Return one CEL rule; `field` is the path that the message is about."""
    return {"rule": rule, "message": message} | ({"fieldPath": field} if field else {})


def cel_rules(*rules: dict[str, str]) -> dict[str, Any]:
    """Return the schema extension with these CEL rules."""
    return {"x-kubernetes-validations": list(rules)}


LONGEST_PULSE_MS: Final = 10_000

RECORDING_RULES: Final = (
    cel_rule(
        "!has(self.durationSeconds) || !has(self.durationMilliseconds)",
        "set at most one of durationSeconds and durationMilliseconds",
        field=".durationMilliseconds",
    ),
    cel_rule(
        "!has(self.storageLocation) || !self.storageLocation.matches('(^|/)[.][.](/|$)')",
        "storageLocation must not contain '..'",
        field=".storageLocation",
    ),
    cel_rule(
        "!has(self.recording) || self.recording != 'Past' || !has(self.delivery) || self.delivery != 'Workload'",
        "recording Past is returned to the operator; remove delivery Workload",
        field=".recording",
    ),
    cel_rule(
        "!has(self.pulse) || !self.pulse || ((!has(self.diagnosis) || self.diagnosis != 'Off')"
        " && (!has(self.recording) || self.recording != 'Past'))",
        "a pulse records now, and its diagnosis decides which traces are kept; remove diagnosis and recording",
        field=".pulse",
    ),
    cel_rule(
        "!has(self.pulse) || !self.pulse || (has(self.durationSeconds) ? 1000 * self.durationSeconds"
        f" : has(self.durationMilliseconds) ? self.durationMilliseconds : 0) <= {LONGEST_PULSE_MS}",
        f"a pulse takes at most {LONGEST_PULSE_MS} ms; set a shorter duration, or none",
        field=".pulse",
    ),
)
"""Rules of a capture and of the template of captures."""


class Model(BaseModel):
    """A base model: camel case in JSON, immutable, unknown fields are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
    )


class TracerLevels(Model):
    """Levels of the profiler's tracers."""

    host: Annotated[int, Field(ge=0, le=3, json_schema_extra=INT32)] | None = None
    """Level of the host tracer. Default: 2."""
    device: Annotated[int, Field(ge=0, le=1, json_schema_extra=INT32)] | None = None
    """Level of the device tracer. Default: 1."""
    python: Annotated[int, Field(ge=0, le=1, json_schema_extra=INT32)] | None = None
    """Level of the Python tracer. Default: 0."""


class NameRef(Model):
    """An object of the same namespace, by name."""

    name: ObjectName
    """Name of the object."""


class WorkloadRef(Model):
    """A workload whose pods are captured."""

    api_version: Annotated[str, Field(max_length=317)] | None = None
    """API version of the workload, for example `jobset.x-k8s.io/v1alpha2`. The kind alone is enough."""
    kind: Annotated[str, Field(max_length=63, json_schema_extra={"enum": list(SELECTABLE_KINDS)})]
    """Kind of the workload."""
    name: ObjectName
    """Name of the workload."""


class StatusCondition(Model):
    """One aspect of the object's state."""

    type: Annotated[str, Field(max_length=316)]
    """Aspect of the state, see `conditions`."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, Field(max_length=1024)]
    """Reason as one word for programs."""
    message: Annotated[str, Field(max_length=32_768)]
    """Explanation for people."""
    last_transition_time: Time
    """Time of the last change of the condition's status."""
    observed_generation: Generation | None = None
    """Generation of the object that the condition is about."""


Conditions = Annotated[list[StatusCondition], Field(json_schema_extra=keyed_by("type"))]


def condition_of(conditions: Iterable[StatusCondition] | None, kind: str) -> StatusCondition | None:
    """Return the condition of a type; None without one."""
    return next((condition for condition in conditions or () if condition.type == kind), None)


def is_true(conditions: Iterable[StatusCondition] | None, kind: str) -> bool:
    """Return whether the condition of a type is True."""
    condition = condition_of(conditions, kind)
    return condition is not None and condition.status == "True"


def _own_annotations(annotations: object) -> object:
    if not isinstance(annotations, Mapping):
        return annotations
    kept = {key: value for key, value in annotations.items() if key in {RUN_ANNOTATION, AUTHOR_ANNOTATION}}
    # Its words are for people; that it is there says that a schedule made the capture.
    return kept | ({CAPTURE_REASON_ANNOTATION: ""} if CAPTURE_REASON_ANNOTATION in annotations else {})


class ObjectMeta(Model):
    """The metadata fields that are used."""

    name: str
    namespace: str
    uid: str
    generation: int = 1
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    annotations: Annotated[dict[str, str], BeforeValidator(_own_annotations)] = Field(default_factory=dict)
    """Annotations that the operator reads; all of them may have 256 KiB, and objects stay in memory."""


def read_object(model: type[T], body: Mapping[str, Any]) -> T:
    """Parse an object as the API returns it.

    Raises:
        ValueError: Fields are invalid; the message names all of them.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ValueError("; ".join(faults)) from error
