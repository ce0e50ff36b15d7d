"""The errors of obstore as `StoreError`s in plain words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from mldiagnostics.errors import (
    NoCredentials,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store.rights import missing_right

if TYPE_CHECKING:
    from mldiagnostics.bucket_urls import BucketUrl

_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>|\(code: ([A-Za-z]\w*)\)")
"""In the response, or of one object in a response to a deletion of several."""
_MESSAGE = re.compile(r"<(?:Message|AuthenticationErrorDetail)>([^<]*)</")
_DESCRIPTION = re.compile(r'"error_description": ?"([^"\\]*)')  # of Azure's token service
_STATUS = re.compile(r"status code: (\d{3})|\(code: (\d{3})\)")
_QUERY = re.compile(r"\?\S*")  # of a URL; may have a signature
_NO_CONTAINER = "The specified container does not exist"
_CAUSE = re.compile(r'(?:message|error): "([^"\n]+)"')  # of a failed connection
_FORBIDDEN = 403
_OF_AUTHENTICATION = {"AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}

_Verdict = tuple[type[StoreError], str, str]

_MISSING_BUCKET: _Verdict = (StoreNotFound, "the bucket does not exist", "create it or correct its name")
_REJECTED: _Verdict = (StoreForbidden, "the credentials were rejected", "correct or renew them")
_SKEW: _Verdict = (StoreForbidden, "the clock of this machine differs from the service's", "set the clock")
_EXPIRED_TOKEN: _Verdict = (StoreForbidden, "the token has expired", "renew the credentials")
_REGION: _Verdict = (StoreError, "the bucket is in another region", "set AWS_REGION to the region of the bucket")
_FULL: _Verdict = (StoreFull, "the store is full", "free space or raise its quota")
_UNREACHABLE: _Verdict = (StoreUnreachable, "no valid response in time", "check the network and try again")
_OTHER: _Verdict = (StoreError, "the request was rejected", "see the service's message")
_NO_CREDENTIALS: dict[str, _Verdict] = {
    "s3": (
        NoCredentials,
        "no AWS credentials",
        "use IRSA or Pod Identity on EKS, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile elsewhere",
    ),
    "azure": (
        NoCredentials,
        "no Azure credentials",
        "use workload identity on AKS, AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN elsewhere",
    ),
}

_ROLE: _Verdict = (
    StoreForbidden,
    "the role was not given to this identity",
    "let the role (AWS) or federated credential (Azure) trust the service account of this pod",
)
_CERTIFICATE: _Verdict = (
    StoreUnreachable,
    "the certificate of the server is not trusted",
    "set AWS_CA_BUNDLE, for Azure SSL_CERT_FILE, to the file of its CA",
)

_CODES: dict[str, _Verdict] = {
    **dict.fromkeys(
        ("NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "InvalidBucketName"), _MISSING_BUCKET
    ),
    **dict.fromkeys(
        *(("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId"), _REJECTED),
    ),
    **dict.fromkeys(("AuthenticationFailed", "InvalidAuthenticationInfo"), _REJECTED),
    **dict.fromkeys(_EXPIRED, _EXPIRED_TOKEN),
    **dict.fromkeys(("RequestTimeTooSkewed",), _SKEW),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"), _REGION
    ),
    **dict.fromkeys(("QuotaExceeded", "XMinioStorageFull", "EntityTooLarge", "InsufficientStorage"), _FULL),
}
"""Codes of the services with a meaning of their own."""

_TEXTS: tuple[tuple[str, _Verdict], ...] = (
    ("redirect without LOCATION", _REGION),
    ("InvalidCertificate", _CERTIFICATE),
    ("Invalid Access Key", _REJECTED),
    ("AADSTS", _ROLE),
    ("AssumeRoleWithWebIdentity", _ROLE),
)
"""Texts of the client and of token services with a meaning of their own."""

_OF_CREDENTIALS = (
    *("Failed to read token file", "Error reading federated token file"),
    *("169.254.169.254", "169.254.170.", "/metadata/identity", "latest/api/token", "/v1/credentials"),
)
"""Texts of failed look-ups of credentials: files, and servers that have them."""


def is_missing_bucket(error: Exception) -> bool:
    """Return whether an error means that there is no such bucket."""
    text = str(error)
    return _code(text) in {"NoSuchBucket", "ContainerNotFound"} or _NO_CONTAINER in text


def is_expired(error: Exception) -> bool:
    """Return whether an error means that the credentials have expired."""
    return _verdict(error, "s3") is _EXPIRED_TOKEN


def store_error(error: Exception, shown: str, url: BucketUrl) -> StoreError:
    """Return an error of the client as a `StoreError`.

    Its message has no URL and no credentials of the request.
    """
    kind, problem, cure = _verdict(error, url.scheme.extra)
    return kind(f"{shown}: {problem}: {_reason(error)}; {cure}")


def _verdict(error: Exception, extra: str) -> _Verdict:
    text = str(error)
    code = _code(text)
    if is_missing_bucket(error):
        return _MISSING_BUCKET
    if code in _OF_AUTHENTICATION and (verdict := _verdict_of_authentication(" ".join(_MESSAGE.findall(text)).lower())):
        return verdict
    if code in _CODES:
        return _CODES[code]
    if verdict := next((verdict for part, verdict in _TEXTS if part in text), None):
        return verdict
    if isinstance(error, UnauthenticatedError) or any(part in text for part in _OF_CREDENTIALS):
        return _NO_CREDENTIALS[extra]
    status = 403 if isinstance(error, PermissionDeniedError) else _status(text)
    if status == _FORBIDDEN or code == "AccessDenied":
        return StoreForbidden, "forbidden", f"grant this identity {missing_right(extra, text)}"
    return _verdict_of_status(status, extra)


def _verdict_of_authentication(message: str) -> _Verdict | None:
    """Return the meaning of Azure's message, which has one code for several causes."""
    if any(part in message for part in ("expired", "expiry", "not valid in the specified time")):
        return _EXPIRED_TOKEN
    if "date header" in message:
        return _SKEW
    return _REJECTED if "failed to authenticate" in message else None


def _verdict_of_status(status: int | None, extra: str) -> _Verdict:
    """Return the meaning of a response without a known code; None means no response."""
    known = {301: _REGION, 401: _NO_CREDENTIALS[extra], 507: _FULL}
    if status in known:
        return known[status]
    return _UNREACHABLE if status is None or status >= 500 or status in {408, 429} else _OTHER


def _reason(error: Exception) -> str:
    """Return the code and message of the service, else the first line of the client's."""
    text = str(error)
    if code := _code(text):
        return f"{code}: {_message(text)}".rstrip(": ")
    if match := _DESCRIPTION.search(text):
        return match[1].strip().rstrip(".")
    if status := _status(text):
        return f"status {status}"
    if "kind: Timeout" in text:
        return "the server did not respond"
    if match := _CAUSE.search(text):
        return match[1]
    first = re.sub(r"^Generic \w+ error: ", "", text.partition("\n")[0])
    return _QUERY.sub("", first.rpartition(" - ")[2] if "Error performing" in first else first).rstrip(" .")


def _code(text: str) -> str:
    match = _CODE.search(text)
    return match[1] or match[2] if match else ""


def _message(text: str) -> str:
    match = _MESSAGE.search(text)
    return match[1].partition("\n")[0].strip().rstrip(".") if match else ""


def _status(text: str) -> int | None:
    match = _STATUS.search(text)
    return int(match[1] or match[2]) if match else None
