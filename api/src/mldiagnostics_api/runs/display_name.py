"""The name of a run for people."""

from mldiagnostics.lifecycle.description import MAX_NAME


def display_name(*, chosen: str, reported: str, workload: str, object_name: str = "") -> str:
    """Return the name of a run, the same in the status, the command line and the view.

    >>> display_name(chosen="", reported="llama", workload="trainer")
    'llama'

    Args:
        chosen: `spec.displayName`, which people set.
        reported: The name that the program gave, in a report or in a status before.
        workload: Name of its workload.
        object_name: Name of its object.
    """
    return (chosen or reported or workload or object_name)[:MAX_NAME]
