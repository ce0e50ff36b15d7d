"""All errors that this package raises on purpose.

MLDiagnosticsError
├── ConfigurationError   an argument or setting is invalid: correct the call (also a ValueError)
│   └── MLRunConfigurationError  the same in `machinelearning_run`, with `strict=True`
├── MissingExtraError    an optional package is not installed: add it to the image (also an ImportError)
├── RecordingError       never raised: an error of Google's SDK; invalid records are counted (also a ValueError)
├── NoActiveRunError     never raised: an error of Google's SDK; records wait for a run
├── ProfilingError       never raised: an error of Google's SDK; failed profiles are logged
├── ControlPlaneClientNotInitializedError  never raised: an error of Google's SDK; runs need no control plane
├── LogUnreadable        the goodput log of a job is missing or not readable: check its location (also a ValueError)
│   └── LogMissing       it is missing
└── StoreError           a storage operation failed
    ├── StoreNotFound    the bucket or directory does not exist: check its name
    ├── StoreForbidden   access is denied: its administrator can grant it
    │   └── NoCredentials  the process has no credentials
    ├── StoreUnreachable no usable response in time: try again later
    ├── StoreFull        no space is left, or the file is over its limit
    ├── AlreadyStored    the key holds other content, which stays unchanged: choose another key
    └── NotStored        the key holds nothing: check the key
"""

from __future__ import annotations


class MLDiagnosticsError(Exception):
    """Base class of all errors of this package."""


class ConfigurationError(MLDiagnosticsError, ValueError):
    """An argument or setting is invalid; the message says which values are accepted."""


class MLRunConfigurationError(ConfigurationError):
    """An argument of `machinelearning_run` is invalid; raised only with `strict=True`."""


class RecordingError(MLDiagnosticsError, ValueError):
    """Never raised; it exists for programs that catch it."""


class NoActiveRunError(MLDiagnosticsError):
    """Never raised; it exists for programs that catch it."""


class ProfilingError(MLDiagnosticsError):
    """Never raised; it exists for programs that catch it."""


class ControlPlaneClientNotInitializedError(MLDiagnosticsError):
    """Never raised; it exists for programs that catch it."""


MLDiagnosticError = MLDiagnosticsError
"""Name of the base class in Google's SDK."""


class MissingExtraError(MLDiagnosticsError, ImportError):
    """An optional package is not installed; `extra` is the extra to install."""

    def __init__(self, *, extra: str, needed_for: str) -> None:
        from mldiagnostics.install import install_hint  # noqa: PLC0415 - only in this case

        super().__init__(f"{needed_for} needs the extra {extra!r}: {install_hint('sdk', extra=extra)}")
        self.extra = extra


class LogUnreadable(MLDiagnosticsError, ValueError):
    """A goodput log is missing or not readable; the message says what to do."""


class LogMissing(LogUnreadable):
    """No goodput log exists at the given location."""


class StoreError(MLDiagnosticsError):
    """A storage operation failed; subclasses name the common causes."""


class StoreNotFound(StoreError):
    """The bucket or directory does not exist."""


class StoreForbidden(StoreError):
    """Access is denied: no permission, no credentials, or read-only."""


class NoCredentials(StoreForbidden):
    """The process has no credentials for the store."""


class StoreUnreachable(StoreError):
    """The store sent no usable response within the time limit; try again later."""


class StoreFull(StoreError):
    """The store has no space left, or the file is over its limit."""


class AlreadyStored(StoreError):
    """The key already holds other content, which stays unchanged."""


class NotStored(StoreError):
    """The key holds nothing."""
