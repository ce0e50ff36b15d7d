"""The two answers to whether a pod is told of its run, and the reasons against it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mldiagnostics_api.matching import MatchReason
from mldiagnostics_api.variables import InjectedIdentity, Variable


class InjectionReason(StrEnum):
    """Why a pod is not told of its run, apart from not being opted in (`matching.Why`)."""

    MALFORMED = "Malformed"
    MIRROR_POD = "MirrorPod"
    OWNERS_UNKNOWN = "OwnersUnknown"
    OWNER_NOT_FOUND = "OwnerNotFound"
    KIND_NOT_SUPPORTED = "KindNotSupported"
    OPTED_OUT = "OptedOutByAnnotation"
    ANNOTATION_INVALID = "AnnotationInvalid"
    NAME_NOT_KNOWN = "NameNotKnown"
    IDENTITY_UNUSABLE = "IdentityUnusable"
    OTHER_RUN = "OtherRun"
    NO_CONTAINER_CHOSEN = "NoContainerChosen"
    TOO_LARGE = "TooLarge"
    ANNOTATIONS_FULL = "AnnotationsFull"


@dataclass(frozen=True, slots=True)
class OwnersUnknown:
    """The owners of a pod could not be found out."""

    message: str
    """What went wrong, as the end of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAddition:
    """What one container gets that it does not have."""

    path: str
    """JSON pointer to the container."""
    variables: tuple[Variable, ...]
    mount: Mapping[str, Any] | None
    has_env: bool
    has_mounts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A pod is told of its run: everything that it does not have yet."""

    identity: InjectedIdentity
    message: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    volume: Mapping[str, Any] | None
    containers: tuple[ContainerAddition, ...]
    labels_dropped: bool
    """Whether the workload's labels are not told, because they are too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotInjected:
    """A pod stays as it is, save that it says why where a label `asked` for more."""

    reason: InjectionReason | MatchReason
    message: str
    asked: bool
    annotations: Mapping[str, str]
    """The explanation, where it has room."""
