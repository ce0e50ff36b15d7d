"""Reasons for failures of a store."""

from __future__ import annotations

import pytest
from mldiagnostics import errors
from mldiagnostics.capture.failures import StoreFailure
from mldiagnostics.capture.model import Reason

REASONS = {
    errors.AlreadyStored: Reason.FILE_EXISTS,
    errors.StoreNotFound: Reason.STORE_MISSING,
    errors.StoreForbidden: Reason.STORE_FORBIDDEN,
    errors.NoCredentials: Reason.STORE_FORBIDDEN,
    errors.StoreUnreachable: Reason.STORE_UNREACHABLE,
    errors.StoreFull: Reason.STORE_FULL,
    errors.NotStored: Reason.STORE_ERROR,
    errors.StoreError: Reason.STORE_ERROR,
}


def kinds(of: type[errors.StoreError]) -> set[type[errors.StoreError]]:
    return {of, *(deeper for kind in of.__subclasses__() for deeper in kinds(kind))}


def test_every_error_of_a_store_has_a_reason() -> None:
    assert kinds(errors.StoreError) == REASONS.keys()


@pytest.mark.parametrize("kind", REASONS, ids=lambda kind: kind.__name__)
def test_each_error_of_a_store_has_its_reason(kind: type[errors.StoreError]) -> None:
    failure = StoreFailure.of(kind("no"))
    assert (failure.reason, failure.message) == (REASONS[kind], "no")
