"""A connection to the cluster that a user means, with their rights."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.credentials import find_access
from mldiagnostics_kube.client.failures import ClusterFailure, failure_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mldiagnostics_kube.client.cluster_options import ClusterOptions


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, and the namespace that the user means."""

    client: ApiClient
    context: str
    """Context of the kubeconfig; empty inside a pod."""
    namespace: str
    """Namespace of requests for one object."""
    scope: str | None
    """Namespace of lists; None for all namespaces."""

    @classmethod
    async def open(cls, options: ClusterOptions) -> Cluster:
        """Return a connection whose client the caller closes.

        Credentials are those of kubectl: --kubeconfig, KUBECONFIG, the service account of a pod, or ~/.kube/config.

        Raises:
            ConfigurationError: There are no credentials, or no such context.
        """
        if options.namespace is not None and options.all_namespaces:
            raise ConfigurationError("--namespace and --all-namespaces: both are given; pass only one of them")
        access = await find_access(os.environ, path=options.kubeconfig, context=options.context)
        namespace = options.namespace or access.namespace
        client = ApiClient.of(access.credentials, is_trusted=False)
        return cls(client, access.context, namespace, None if options.all_namespaces else namespace)

    @property
    def description(self) -> str:
        """The cluster in messages."""
        return f"cluster '{self.context or self.client.access.server}'"

    @property
    def place(self) -> str:
        """The namespaces of lists, in messages."""
        return "all namespaces" if self.scope is None else f"namespace '{self.scope}'"

    def failure(self, error: ClusterError) -> ClusterFailure:
        """Return a failed request in words for the user."""
        return failure_of(error, cluster=self.description)


@asynccontextmanager
async def connect(options: ClusterOptions) -> AsyncIterator[Cluster]:
    """Connect to the cluster while the block runs.

    Raises:
        ConfigurationError: As for `Cluster.open`.
        ClusterFailure: A request of the block failed and was not handled there.
    """
    cluster = await Cluster.open(options)
    try:
        yield cluster
    except ClusterError as error:
        raise cluster.failure(error) from error
    finally:
        await cluster.client.aclose()
