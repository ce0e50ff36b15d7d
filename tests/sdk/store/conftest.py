"""A proxy that injects faults before the servers of S3 and Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.servers.emulator_faults import FaultyBucket, faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.object_servers import ObjectServer


@pytest.fixture(params=["s3", "az"])
def faulty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyBucket]:
    """A bucket of S3 and one of Azure, whose requests can fail."""
    server: ObjectServer = request.getfixturevalue({"s3": "s3_server", "az": "azure_server"}[request.param])
    bucket = request.getfixturevalue({"s3": "s3_bucket", "az": "azure_container"}[request.param])
    with faulty_proxy(server) as proxy:
        for variable, value in server.environment(proxy.url).items():
            monkeypatch.setenv(variable, value)
        yield FaultyBucket(request.param, f"{request.param}://{bucket}/p", proxy, server)
