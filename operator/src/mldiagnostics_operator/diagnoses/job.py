"""The Job that diagnoses one session, out of the template of the chart; pure.

The template has everything that an administrator sets: image, user, limits, volumes. Its first container has a mount
of the operator's volume, of which the Job gets the directory of the session alone.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from mldiagnostics.layout import session_prefix
from mldiagnostics_api.captures.location import Medium
from mldiagnostics_kube.process.settings import absolute_path

if TYPE_CHECKING:
    from mldiagnostics_api.captures.location import Location


VOLUME: Final = "profiles"
"""Name of the operator's volume in the template."""
_ROOT: Final = "/traces"
_NAME: Final = "mldiag-diagnosis-"


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """Labels and spec of the Jobs."""

    labels: dict[str, str]
    spec: dict[str, Any]
    reads_buckets: bool
    """Whether the Job has an identity for buckets."""

    @classmethod
    def parse(cls, document: str) -> Self:
        """Parse the JSON document of the chart.

        Raises:
            ValueError: It is not such a document.
        """
        try:
            raw = json.loads(document)
            template = cls(dict(raw["labels"]), dict(raw["spec"]), bool(raw["readsBuckets"]))
            template.spec["template"]["spec"]["containers"][0]["name"]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ValueError(f"is not the template of a Job: {type(error).__name__}: {error}") from error
        return template

    def obstacle(self, location: Location) -> str:
        """Return why no Job can read a log directory; empty if one can."""
        if location.medium is Medium.BUCKET and not self.reads_buckets:
            return "Jobs have no identity for buckets; set diagnosis.buckets, and an identity of their service account"
        if location.medium is Medium.VOLUME and not self._volume():
            return "the operator's volume belongs to its pod alone; set volume.claim.enabled or volume.existingClaim"
        if location.medium is Medium.POD:
            return "the traces are in the pods; set storageLocation to a bucket or the operator's volume"
        return ""

    def manifest(self, uid: str, location: Location, session: str) -> dict[str, Any]:
        """Return the Job of a capture; its uid names it, so that there is only one.

        Args:
            uid: Uid of the capture.
            location: Log directory of the session, which has no obstacle.
            session: Name of the session.
        """
        spec = deepcopy(self.spec)
        pod = spec["template"]["spec"]
        container = pod["containers"][0]
        if location.medium is Medium.VOLUME:
            folder = session_prefix(session)
            mount = {
                "name": VOLUME,
                "mountPath": f"{_ROOT}/{folder}",
                "subPath": "/".join((*location.segments, folder)),
            }
            container["volumeMounts"] = [*_others(container.get("volumeMounts")), mount]
            container["args"] = ["session", _ROOT, session]
        else:
            pod["volumes"] = _others(pod.get("volumes"))
            container["volumeMounts"] = _others(container.get("volumeMounts"))
            container["args"] = ["session", str(location), session]
        spec["template"]["metadata"] = {"labels": dict(self.labels)}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"{_NAME}{uid}", "labels": dict(self.labels)},
            "spec": spec,
        }

    def _volume(self) -> bool:
        return any(volume["name"] == VOLUME for volume in self.spec["template"]["spec"].get("volumes") or ())


def _others(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the volumes or mounts but that of the operator's volume."""
    return [entry for entry in entries or [] if entry["name"] != VOLUME]


def read_template(raw: str) -> JobTemplate:
    """Return the template of a file; a parser of settings.

    Args:
        raw: Absolute path of the file.

    Raises:
        ValueError: The file cannot be read, or is not a template.
    """
    try:
        document = absolute_path(raw).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {error}") from error
    return JobTemplate.parse(document)
