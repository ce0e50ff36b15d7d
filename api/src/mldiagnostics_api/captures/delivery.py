"""The log directory of a capture's traces, and their writer."""

from mldiagnostics.capture.model import Delivery, Recording

from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import RefusalError
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import TriggerCapture


def root_of(
    trigger: TriggerCapture, storage: str | None, policy: Policy, object_namespace: str, pod_namespace: str
) -> Location:
    """Return the log directory, or the root of the runs' ones.

    Args:
        trigger: The capture.
        storage: Location that the capture or its run names; None for the operator's default.
        policy: Limits of the administrator.
        object_namespace: Namespace of the object.
        pod_namespace: Namespace of the pods.

    Raises:
        RefusalError: There is none, or it is not allowed.
    """
    if storage is None:
        if policy.default_storage is None:
            raise RefusalError(
                RefusalReason.STORAGE_MISSING,
                "storageLocation: not set, and the operator has no default storage; set storageLocation",
            )
        return policy.default_storage
    try:
        location = Location.parse(storage)
    except ValueError as error:
        raise RefusalError(RefusalReason.STORAGE_INVALID, f"storageLocation: {error}") from error
    # The pod writes with its own permissions, so its namespace must be allowed too.
    by_pod = location.medium is Medium.POD or trigger.delivery is Delivery.WORKLOAD
    for namespace in {object_namespace, pod_namespace} if by_pod else {object_namespace}:
        if refusal := policy.storage_refusal(location, namespace):
            raise RefusalError(RefusalReason.STORAGE_NOT_ALLOWED, refusal)
    return location


def delivery_of(
    trigger: TriggerCapture, location: Location, policy: Policy, pod_namespace: str, *, chosen: bool
) -> Delivery:
    """Return the writer of the traces.

    Args:
        trigger: The capture.
        location: The log directory.
        policy: Limits of the administrator.
        pod_namespace: Namespace of the pods.
        chosen: Whether the capture or its run names the location.

    Raises:
        RefusalError: The requested writer cannot write there.
    """
    requested = trigger.delivery or Delivery.AUTO
    is_past = trigger.recording is Recording.PAST
    if location.medium is Medium.POD and (is_past or trigger.pulse):
        field = "recording Past" if is_past else "pulse"
        raise RefusalError(
            RefusalReason.DELIVERY_IMPOSSIBLE,
            f"{field}: the operator cannot write to or read '{location}' in the pod; use a bucket or its volume",
        )
    if is_past and requested is Delivery.WORKLOAD:
        raise RefusalError(
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "delivery Workload: recording Past is returned to the operator; use delivery Operator or Auto",
        )
    if location.medium is Medium.POD:
        if requested is Delivery.OPERATOR:
            raise RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE,
                f"delivery Operator: cannot write to '{location}' in the pod; use delivery Workload or Auto",
            )
        return Delivery.WORKLOAD
    if location.medium is Medium.VOLUME:
        if requested is Delivery.WORKLOAD:
            raise RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE,
                f"delivery Workload: cannot write to '{location}' on the operator's volume; "
                "use a bucket or a path in the pod",
            )
        return Delivery.OPERATOR
    # Auto lets an old server write to the bucket with the pod's permissions.
    if requested is Delivery.AUTO and chosen and not policy.may_store(location, pod_namespace):
        return Delivery.OPERATOR
    return requested
