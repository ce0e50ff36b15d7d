"""The container that runs the program of a pod, and its restarts in place."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.lifecycle.fields import count, mapping, mappings, path, text
from mldiagnostics_api.workloads.kinds import Object

CRASH_LOOP: Final = "CrashLoopBackOff"
"""The kubelet's reason while it delays the next restart of a container."""
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_TEXT: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PodProgram:
    """The program of a pod: its container, as the kubelet restarts it in place.

    It is the container that `kubectl` selects by default: the one that an annotation names, else the first.
    """

    pod: str
    uid: str
    restarts: int = 0
    """How often the container was restarted, by the kubelet's count."""
    started: datetime | None = None
    """Start of the current instance; None while none runs."""
    ended: datetime | None = None
    """End of the instance that ended last."""
    reason: str = ""
    """The kubelet's reason of this end, such as `OOMKilled`."""
    message: str = ""
    """This end in one sentence."""
    waiting: str = ""
    """The kubelet's words while it delays the next restart; else empty."""
    before: "PodProgram | None" = None
    """Program with the end of the instance before, if the newest one has ended too."""

    @classmethod
    def of(cls, pod: Object) -> "PodProgram":
        """Read a pod as the API returns it; invalid fields count as absent."""
        metadata, status = pod["metadata"], mapping(pod.get("status"))
        containers = [text(each.get("name")) for each in mappings(mapping(pod.get("spec")).get("containers"))]
        named = text(path(metadata, "annotations").get(_DEFAULT_CONTAINER))
        name = named if named in containers else next(iter(containers), "")
        container = next((each for each in mappings(status.get("containerStatuses")) if each.get("name") == name), {})
        state = mapping(container.get("state"))
        ends = [mapping(state.get("terminated")), path(container, "lastState", "terminated")]
        last, *earlier = [end for end in ends if end] or [{}]
        waiting = mapping(state.get("waiting"))
        is_delayed = waiting.get("reason") == CRASH_LOOP
        program = cls(
            pod=metadata["name"],
            uid=metadata["uid"],
            restarts=count(container.get("restartCount")),
            started=optional_time(text(mapping(state.get("running")).get("startedAt")) or None),
            waiting=(text(waiting.get("message")) or CRASH_LOOP)[:_TEXT] if is_delayed else "",
        )
        before = _ended_by(program, name, earlier[0]) if earlier else None
        return replace(_ended_by(program, name, last), before=before) if last else program


def _ended_by(program: PodProgram, container: str, end: Object) -> PodProgram:
    """Return the program with an end of its container, as the kubelet reports it."""
    code = count(end.get("exitCode"))
    return replace(
        program,
        ended=optional_time(text(end.get("finishedAt")) or None),
        reason=text(end.get("reason"))[:_TEXT],
        message=f"container '{container}' of pod '{program.pod}' ended with exit code {code}",
    )
