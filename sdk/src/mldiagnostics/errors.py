"""Every error that this package raises on purpose, named for who can do something about it.

MLDiagnosticsError
├── ConfigurationError   what was asked for cannot be meant: the caller mends the call (also a ValueError)
│   └── MLRunConfigurationError  it was asked of `machinelearning_run`, with `strict=True`
├── MissingExtraError    an optional part is not installed: whoever builds the image (also an ImportError)
├── RecordingError       one of Google's SDK: here records that cannot be kept are counted (also a ValueError)
├── NoActiveRunError     one of Google's SDK: here what needs a run waits for one
├── ProfilingError       one of Google's SDK: here a profile that cannot be taken is told in the log
├── ControlPlaneClientNotInitializedError  one of Google's SDK: here runs need no control plane
├── LogUnreadable        the goodput log of a job is missing or may not be read: whoever named it (also a ValueError)
│   └── LogMissing       it is missing
└── StoreError           a place for files did not do its part
    ├── StoreNotFound    the bucket or directory is not there: whoever named it
    ├── StoreForbidden   it is there, we may not: its administrator
    │   └── NoCredentials  we have nothing to show: whoever runs the process
    ├── StoreUnreachable no usable answer in time: nobody yet, try again later
    ├── StoreFull        no room: whoever pays for it
    ├── AlreadyStored    the key holds other content, which stays as it is: whoever chose the key
    └── NotStored        the key holds nothing: whoever chose the key
"""

from __future__ import annotations


class MLDiagnosticsError(Exception):
    """The root: catch it to catch whatever this package raises on purpose."""


class ConfigurationError(MLDiagnosticsError, ValueError):
    """A value cannot be meant; the message names it and says what is accepted."""


class MLRunConfigurationError(ConfigurationError):
    """A run cannot begin as it was asked to; raised only with `strict=True`."""


class RecordingError(MLDiagnosticsError, ValueError):
    """Never raised: it exists for programs that catch it."""


class NoActiveRunError(MLDiagnosticsError):
    """Never raised: it exists for programs that catch it."""


class ProfilingError(MLDiagnosticsError):
    """Never raised: it exists for programs that catch it."""


class ControlPlaneClientNotInitializedError(MLDiagnosticsError):
    """Never raised: it exists for programs that catch it."""


MLDiagnosticError = MLDiagnosticsError
"""The root's name in Google's SDK."""


class MissingExtraError(MLDiagnosticsError, ImportError):
    """An optional part of the package is not installed; `extra` is the one to install."""

    def __init__(self, *, extra: str, needed_for: str) -> None:
        from mldiagnostics.install import install_hint  # noqa: PLC0415 - only where something is missing

        super().__init__(f"{needed_for} needs the extra {extra!r}: {install_hint('sdk', extra=extra)}")
        self.extra = extra


class LogUnreadable(MLDiagnosticsError, ValueError):
    """There is no goodput log where one was looked for, or it may not be read; the message says what to do."""


class LogMissing(LogUnreadable):
    """There is no goodput log where one was looked for."""


class StoreError(MLDiagnosticsError):
    """A store failed in a way that has no name of its own."""


class StoreNotFound(StoreError):
    """The bucket or the directory that should hold the files is not there."""


class StoreForbidden(StoreError):
    """The store refused us: no permission, no credentials, or read-only."""


class NoCredentials(StoreForbidden):
    """The process has no credentials for the store, so that no request can succeed."""


class StoreUnreachable(StoreError):
    """The store gave no usable answer within the time limit; trying again later may help."""


class StoreFull(StoreError):
    """The store has no room, or the file is over its limit."""


class AlreadyStored(StoreError):
    """The key holds other content already; that content was not touched."""


class NotStored(StoreError):
    """The key holds nothing."""
