"""Programs in containers of pods, run as by `kubectl exec`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from mldiagnostics_kube.client.apiserver import ClusterError, Unavailable, path_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mldiagnostics_kube.client.api_client import ApiClient

__all__ = ["PodContainer", "ProgramFailed", "run_in_container"]

PROTOCOL: Final = "v4.channel.k8s.io"
MAX_ERROR_BYTES: Final = 4096
"""So much of the end of standard error is part of a message."""
_STDOUT, _STDERR, _STATUS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container of a pod."""

    namespace: str
    pod: str
    name: str


class ProgramFailed(ClusterError):
    """A program ended with another status than 0.

    `code` is not known if it did not start.
    """

    def __init__(self, message: str, *, code: int | None) -> None:
        super().__init__(message, detail=message)
        self.code = code


async def run_in_container(
    client: ApiClient, container: PodContainer, command: Sequence[str], write: Callable[[bytes], object]
) -> None:
    """Run a program and pass what it prints to `write`, until it ends.

    Args:
        client: Client of the cluster.
        container: The container; its image has the program.
        command: The program with its arguments; no shell reads them.
        write: Called with each part of standard output.

    Raises:
        ProgramFailed: The program failed; the message has the end of its standard error.
        ClusterError: It could not be run, or the connection broke.
    """
    path = path_to("", "v1", "pods", namespace=container.namespace, name=container.pod, sub="exec")
    arguments = [("container", container.name), ("stdout", "true"), ("stderr", "true")]
    query = [*arguments, *(("command", part) for part in command)]
    errors, status = b"", None
    socket = await client.open_socket(path, protocol=PROTOCOL, query=query)
    try:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, content = message.data[0], message.data[1:]
            if channel == _STDOUT:
                write(content)
            elif channel == _STDERR:
                errors = (errors + content)[-MAX_ERROR_BYTES:]
            elif channel == _STATUS:
                status = json.loads(content)
    finally:
        await socket.close()
    if status is None:
        problem = "the connection to the program broke"
        raise Unavailable(f"{container.pod}: {problem}", detail=problem)
    if status.get("status") != "Success":
        problem = errors.decode(errors="replace").strip().rpartition("\n")[2] or str(status.get("message", ""))
        raise ProgramFailed(problem, code=_exit_code(status))


def _exit_code(status: Mapping[str, Any]) -> int | None:
    """Return the code of a status as the kubelet sends it."""
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [each.get("message", "") for each in causes if each.get("reason") == "ExitCode"]
    return int(codes[0]) if codes and codes[0].isdecimal() else None
