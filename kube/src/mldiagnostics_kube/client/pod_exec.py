"""Programs in containers of pods, run as by `kubectl exec`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from mldiagnostics_kube.client.apiserver import ClusterError, InvalidResponse, Unavailable, path_to
from mldiagnostics_kube.client.shapes import STATUS, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mldiagnostics_kube.client.api_client import ApiClient


PROTOCOL: Final = "v4.channel.k8s.io"
MAX_ERROR_BYTES: Final = 4096
"""So much of the end of standard error is part of a message."""
SILENCE_S: Final = 120.0
"""A program that prints nothing for so long, such as one that waits for a volume, is given up."""
_CODE_DIGITS: Final = 3
_STDOUT, _STDERR, _STATUS = 1, 2, 3
_ENDS: Final = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)


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
        while (message := await _next(socket, container)) is not None:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, content = message.data[0], message.data[1:]
            if channel == _STDOUT:
                write(content)
            elif channel == _STDERR:
                errors = (errors + content)[-MAX_ERROR_BYTES:]
            elif channel == _STATUS:
                status = _status(container, content)
    finally:
        await socket.close()
    if status is None:
        problem = "the connection to the program broke"
        raise Unavailable(f"{container.pod}: {problem}", detail=problem)
    if status.get("status") != "Success":
        problem = errors.decode(errors="replace").strip().rpartition("\n")[2] or str(status.get("message", ""))
        raise ProgramFailed(problem, code=_exit_code(status))


async def _next(socket: aiohttp.ClientWebSocketResponse, container: PodContainer) -> aiohttp.WSMessage | None:
    """Return the next message, or None at the end of the connection."""
    try:
        message = await socket.receive(SILENCE_S)
    except TimeoutError as silence:
        problem = f"the program printed nothing for {SILENCE_S:g} s"
        raise Unavailable(f"{container.pod}: {problem}", detail=problem) from silence
    return None if message.type in _ENDS else message


def _status(container: PodContainer, content: bytes) -> dict[str, Any]:
    try:
        status = json.loads(content)
    except (ValueError, RecursionError):
        status = None
    if problem := problem_of(status, STATUS):
        detail = f"the end of the program is not a Status: {problem}"
        raise InvalidResponse(f"{container.pod}: {detail}", detail=detail)
    return dict(status)


def _exit_code(status: Mapping[str, Any]) -> int | None:
    """Return the code of a status as the kubelet sends it."""
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [each.get("message", "") for each in causes if each.get("reason") == "ExitCode"]
    return int(codes[0]) if codes and codes[0].isdecimal() and len(codes[0]) <= _CODE_DIGITS else None
