"""The storage that a run may name, checked as the admission policy checks it."""

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy


def run_root(storage_location: str | None, namespace: str, policy: Policy) -> Location:
    """Return the root of a run's files.

    Args:
        storage_location: `spec.storageLocation` of the run; None for the operator's default storage.
        namespace: Namespace of the run.
        policy: Limits of the administrator.

    Raises:
        ValueError: The location is invalid or not allowed, or there is no default storage.
    """
    if storage_location is None:
        if policy.default_storage is None:
            raise ValueError("storageLocation: not set, and the operator has no default storage; set storageLocation")
        return policy.default_storage
    try:
        root = Location.parse(storage_location)
    except ValueError as error:
        raise ValueError(f"storageLocation: {error}") from error
    if refusal := policy.storage_refusal(root, namespace):
        raise ValueError(refusal)
    return root
