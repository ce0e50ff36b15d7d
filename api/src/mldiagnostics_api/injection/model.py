"""The two results of an injection decision, and the reasons against an injection."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mldiagnostics_api.workloads.matching import MatchReason
from mldiagnostics_api.workloads.variables import InjectedIdentity, Variable


class InjectionReason(StrEnum):
    """Why nothing is injected, besides the reasons in `matching.MatchReason`."""

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
    POD_TOO_LARGE = "PodTooLarge"
    ANNOTATIONS_FULL = "AnnotationsFull"


@dataclass(frozen=True, slots=True)
class OwnersUnknown:
    """The owners of a pod could not be read."""

    message: str
    """The failure, as the end of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAddition:
    """Additions to one container."""

    path: str
    """JSON pointer to the container."""
    variables: tuple[Variable, ...]
    mount: Mapping[str, Any] | None
    has_env: bool
    has_mounts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """All additions to a pod that it does not have yet."""

    identity: InjectedIdentity
    message: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    volume: Mapping[str, Any] | None
    containers: tuple[ContainerAddition, ...]
    labels_dropped: bool
    """Whether the workload's labels were dropped because they are too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotInjected:
    """A pod without injection; if a label requested one, the pod gets an explanation."""

    reason: InjectionReason | MatchReason
    message: str
    requested: bool
    """Whether a label requested an injection."""
    annotations: Mapping[str, str]
    """The explanation, if the pod has space for it."""
    warning: str = ""
    """The explanation for the client if the pod has no space for it."""
