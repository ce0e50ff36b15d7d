"""The author of a schedule: the user whose right to capture its captures need.

The webhook notes them in an annotation, and the admission policy accepts no other value. Format: name and groups, one
in each line.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

from mldiagnostics_api.resources import CONNECTIONS

LONGEST: Final = 16 * 1024
"""Authors with more groups are not noted; all annotations of an object may have 256 KiB."""


@dataclass(frozen=True, slots=True)
class Author:
    """A user as the API server knows them."""

    name: str
    groups: tuple[str, ...] = ()

    @classmethod
    def of_request(cls, user: object) -> Self | None:
        """Return the user of an admission request; None if it cannot be noted."""
        if not isinstance(user, dict) or not user.get("username") or not isinstance(user["username"], str):
            return None
        groups = user.get("groups") or []
        author = cls(user["username"], tuple(groups) if _are_words(groups) else ())
        return author if len(author.text) <= LONGEST else None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the author in an annotation; None if it has none."""
        name, *groups = text.split("\n")
        return cls(name, tuple(groups)) if name else None

    @property
    def text(self) -> str:
        """The value of the annotation."""
        return "\n".join((self.name, *self.groups))

    def access_review(self, namespace: str) -> dict[str, Any]:
        """Return the question whether they may create captures, for the API server."""
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": namespace},
            "spec": {
                "user": self.name,
                "groups": list(self.groups),
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": "create",
                    "group": CONNECTIONS.group,
                    "resource": CONNECTIONS.plural,
                },
            },
        }


def _are_words(groups: Iterable[object]) -> bool:
    return isinstance(groups, list) and all(isinstance(each, str) for each in groups)
