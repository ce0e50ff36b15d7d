"""The right that a forbidden request to a bucket needs; pure."""

from __future__ import annotations

import re

_METHOD = re.compile(r"\b(GET|HEAD|PUT|POST|DELETE) (?:https?://|REDACTED)")
_LIST = re.compile(r"performing list request|GET \S+/o\?")
_DELETION = re.compile(r"bulk delete request|DeleteObjects request|POST \S+\?delete\b", re.IGNORECASE)
_ACTIONS = {"GET": "read", "HEAD": "read", "PUT": "write", "POST": "write", "DELETE": "delete"}
_ROLE_OF_READERS = "the role Storage Blob Data Reader"
_ROLE_OF_WRITERS = "the role Storage Blob Data Contributor"

_RIGHTS = {
    "s3": {
        "list": "s3:ListBucket on the bucket",
        # Without the second one, a missing object is forbidden.
        "read": "s3:GetObject on the objects, and s3:ListBucket on the bucket",
        "write": "s3:PutObject on the objects",
        "delete": "s3:DeleteObject on the objects",
        "": "s3:ListBucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on the objects",
    },
    "azure": {
        "list": f"{_ROLE_OF_READERS} on the container, or a signature with the permission l",
        "read": f"{_ROLE_OF_READERS} on the container, or a signature with the permission r",
        "write": f"{_ROLE_OF_WRITERS} on the container, or a signature with the permissions c and w",
        "delete": f"{_ROLE_OF_WRITERS} on the container, or a signature with the permission d",
        "": f"{_ROLE_OF_WRITERS} on the container",
    },
    "gcs": {
        "list": "storage.objects.list on the bucket, as roles/storage.objectViewer has it",
        "read": "storage.objects.get on the bucket, as roles/storage.objectViewer has it",
        "write": "storage.objects.create on the bucket, as roles/storage.objectUser has it",
        "delete": "storage.objects.delete on the bucket, as roles/storage.objectUser has it",
        "": "a role on the bucket, such as roles/storage.objectUser",
    },
}


def missing_right(service: str, text: str) -> str:
    """Return what to grant after a request was forbidden.

    Args:
        service: `s3`, `azure` or `gcs`.
        text: Message of the client, which has the method of the request, and mostly its URL.

    >>> missing_right("s3", "Error performing PUT https://s3.example/b/k in 1 ms - Server returned 403")
    's3:PutObject on the objects'
    """
    if _LIST.search(text):
        action = "list"
    elif _DELETION.search(text):
        action = "delete"
    else:
        methods = _METHOD.findall(text)
        action = _ACTIONS[methods[-1]] if methods else ""
    return _RIGHTS[service][action]
