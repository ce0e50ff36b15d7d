"""The operator's default storage, from the policy that its chart installs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError, path_to
from mldiagnostics_kube.installation.operator_volume import NAMESPACE, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.runs import RunRow

    from mldiagnostics_kube.client.api_client import ApiClient


VOLUME: Final = "volume:///"
"""Default of the chart."""
_POLICY: Final = "policy.json"


async def records_location(client: ApiClient, row: RunRow) -> str:
    """Return the directory of the records of a run.

    A run without a storage of its own has its reports below the operator's default root, also if its captures have
    other directories.

    Raises:
        ClusterError: The cluster cannot be reached.
    """
    if row.directory.endswith(f"/{row.run_id}"):
        return row.directory
    root = await _default_root(client)
    return f"{root.removesuffix('/')}/{row.run_id}"


async def _default_root(client: ApiClient) -> str:
    """Return the root of runs that name no storage.

    It is that of the chart if the caller may not read the policy.
    """
    for namespace in (None, NAMESPACE):
        path = path_to("", "v1", "configmaps", namespace=namespace)
        try:
            roots = await client.items(path, _root, labels=PRODUCT)
        except ClusterError as error:
            if error.status not in NOT_PERMITTED:
                raise
        else:
            return roots[0] if roots else VOLUME
    return VOLUME


def _root(config_map: Mapping[str, Any]) -> str | None:
    """Return the default storage of a policy; None for another ConfigMap."""
    try:
        policy = json.loads((config_map.get("data") or {}).get(_POLICY, "{}"))
    except ValueError:
        return None
    root = policy.get("defaultStorage") if isinstance(policy, dict) else None
    return root if isinstance(root, str) and root else None
