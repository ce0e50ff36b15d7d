"""The policy document that the operator's chart mounts."""

from mldiagnostics_api.captures.policy import Policy

from mldiagnostics_kube.process.settings import absolute_path


def read_policy(raw: str) -> Policy:
    """Return the policy of a file; a parser of settings.

    Args:
        raw: Absolute path of the file.

    Raises:
        ValueError: The file cannot be read, or is not a valid policy.
    """
    try:
        document = absolute_path(raw).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {error}") from error
    try:
        return Policy.parse(document)
    except ValueError as error:
        raise ValueError(f"is not a valid policy: {error}") from error
