"""`mldiag capture` in a cluster, by an MLDiagnosticsConnection.

It is created and followed to its end.
"""

from __future__ import annotations

import asyncio
import shlex
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.locations import is_bucket, is_on_volume
from mldiagnostics_api.captures.capture_object import CaptureStatus
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import ClusterError, Unavailable, path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_kube.installation.captures import cancel_capture

from mldiagnostics_cli.captures.capture_object import (
    create_or_withdraw,
    delete_capture,
    path_of,
    withdraw_capture,
)
from mldiagnostics_cli.captures.connection import exit_code_of, manifest, result_document
from mldiagnostics_cli.captures.ending import STATE_COLOURS, CaptureEnd, opening_command
from mldiagnostics_cli.captures.live_line import LiveLine
from mldiagnostics_cli.captures.operator_verdict import show_verdict
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import INTERRUPTED
from mldiagnostics_cli.output import note, show, show_document, show_rows
from mldiagnostics_cli.runs.cluster_runs import find_run_object
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_kube.client.cluster import Cluster
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.interruption import Interruption

    Body = Mapping[str, Any]


OPERATOR_S: Final = 30.0
"""An operator takes a new object within a second; after so long none is there."""
DIAGNOSIS_S: Final = 300.0
"""The longest wait for a diagnosis; most take seconds, and Jobs of other captures go first."""
_RETRY_S: Final = 1.0


async def capture_in_cluster(
    options: ClusterOptions,
    target: ClusterTarget,
    narrowing: TargetNarrowing,
    settings: CaptureSettings,
    output: OutputFormat,
    *,
    interruption: Interruption,
    wait: bool,
) -> CaptureEnd:
    """Create the object of a capture, follow it to its end, and print the results.

    Ctrl-C cancels the capture in the cluster; traces that were recorded until then are stored.

    Raises:
        ConfigurationError: The target is not valid.
        ClusterFailure: The object is rejected, no operator takes it, or the cluster cannot be reached.
        Abort: Ctrl-C, before an operator had taken the object, which is deleted.
    """
    async with connect(options) as cluster:
        namespace = cluster.namespace
        if target.run:
            found = (await find_run_object(cluster, target.run))["metadata"]
            target, namespace = replace(target, run=found["name"]), found["namespace"]
        made = await create_or_withdraw(cluster, namespace, manifest(target, narrowing, settings), interruption)
        if not wait:
            show_detached(CaptureStatus.of(made), output)
            return CaptureEnd(exit_code=0)
        follower = _Follower(cluster, made, interruption)
        status = await follower.follow()
        if settings.dry_run:
            await delete_capture(cluster, made)
        show_result(status, output)
        wants_verdict = settings.diagnosed and output in {OutputFormat.TABLE, OutputFormat.WIDE}
        is_diagnosed = wants_verdict and show_verdict(await follower.until_diagnosed())
    return CaptureEnd(
        exit_code=INTERRUPTED if interruption.is_requested else exit_code_of(status),
        directory=status.location if status.captured else "",
        session=status.session,
        namespace=status.namespace,
        is_diagnosed=is_diagnosed,
    )


def show_detached(status: CaptureStatus, output: OutputFormat) -> None:
    """Print the name of an object that nobody follows."""
    name = f"{CONNECTIONS.definition_name}/{status.name}"
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document({"object": f"{status.namespace}/{status.name}"}, output)
        return
    show(name)
    if output is not OutputFormat.NAME:
        note(f"To follow it: kubectl wait --for=condition=Complete {name} -n {status.namespace}")


def show_result(status: CaptureStatus, output: OutputFormat) -> None:
    """Print the outcome of each target, and where the profiles are."""
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(result_document(status), output)
        return
    if output is OutputFormat.NAME:
        show(f"{CONNECTIONS.definition_name}/{status.name}")
        return
    if status.results:
        show_rows(status.results, _RESULTS, output, name=_target_name, document=dict)
    note(f"{status.reason}: {status.message}")
    if status.captured:
        skew = "" if status.skew_ms is None else f", starts within {status.skew_ms} ms"
        note(f"Session {status.session}: {size(status.bytes)} in {status.location}{skew}.")
    if status.captured and is_bucket(status.location):
        note(f"To open it: {opening_command(status.location)}")
    elif status.captured and is_on_volume(status.location):
        session = shlex.quote(f"{status.location}/{status.session}")
        note(f"To open it: mldiag profiles download {session} -n {status.namespace} --to profiles")


class _Follower:
    """Follows one object to its end, and cancels it on Ctrl-C."""

    def __init__(self, cluster: Cluster, made: Body, interruption: Interruption) -> None:
        self._cluster, self._made, self._interruption = cluster, made, interruption
        self._collection = path_to(*CONNECTIONS.gvr, namespace=made["metadata"]["namespace"])
        self._path = path_of(made)
        self._version = made["metadata"]["resourceVersion"]
        self._status = CaptureStatus.of(made)
        self._line = LiveLine(self._text)
        self._until_started = asyncio.timeout(OPERATOR_S)
        self._cancelling: asyncio.Task[None] | None = None

    async def follow(self) -> CaptureStatus:
        """Return the last status.

        Raises:
            ClusterFailure: No operator takes the object, which is deleted.
            Abort: Ctrl-C, before an operator had taken it.
        """
        note(f"Capture {self._status.name} in namespace {self._status.namespace}")
        try:
            with self._interruption.stopping(self._cancel):
                async with self._until_started, self._line.shown():
                    while not self._status.is_complete:
                        await self._watch(until=_is_complete)
        except TimeoutError:
            if self._interruption.is_requested:
                await withdraw_capture(self._cluster, self._made)
            await delete_capture(self._cluster, self._made)
            raise ClusterFailure(
                f"{self._status.name}: no operator has taken it in {OPERATOR_S:g} s, so it was deleted; install or "
                "repair the operator, or use `mldiag capture --direct`",
                status=0,
            ) from None
        return self._status

    async def until_diagnosed(self) -> CaptureStatus:
        """Return the status once a complete capture has its diagnosis.

        Ctrl-C and a time limit end the wait; the diagnosis is pending then.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(DIAGNOSIS_S) as limit, self._line.shown():
                with self._interruption.stopping(lambda: limit.reschedule(asyncio.get_running_loop().time())):
                    while not _has_diagnosis(self._status):
                        await self._watch(until=_has_diagnosis)
        return self._status

    async def _watch(self, *, until: Callable[[CaptureStatus], bool]) -> None:
        """Read the changes until the status is the wanted one or the watch ends."""
        try:
            events = self._cluster.client.watch(
                self._collection, self._version, fields=f"metadata.name={self._status.name}"
            )
            async with aclosing(events):
                async for event in events:
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self._take(event["object"])
                    if until(self._status):
                        return
        except Unavailable:
            await asyncio.sleep(_RETRY_S)
        with suppress(Unavailable):
            self._take(await self._cluster.client.get(self._path))

    def _take(self, body: Body) -> None:
        self._version = body["metadata"]["resourceVersion"]
        before, self._status = self._status, CaptureStatus.of(body)
        if self._status.is_started and not before.is_started and not self._interruption.is_requested:
            self._until_started.reschedule(None)
        if self._status.message and self._status.message != before.message and not self._status.is_complete:
            self._line.print(self._status.message)

    def _cancel(self) -> None:
        if not self._status.is_started:
            self._until_started.reschedule(asyncio.get_running_loop().time())
            return
        self._line.print("Cancelling the capture; press Ctrl-C again to leave without its results.")
        self._cancelling = asyncio.create_task(self._patch())

    async def _patch(self) -> None:
        try:
            await cancel_capture(self._cluster.client, self._status.namespace, self._status.name)
        except ClusterError as error:  # it is followed anyway
            note(f"mldiag: {self._status.name}: not cancelled: {error}")

    def _text(self) -> str:
        if self._status.is_complete:
            return "the operator diagnoses the session"
        doing = "cancelling" if self._cancelling is not None else self._status.message or "waiting for the operator"
        return f"{self._status.progress} {doing}".strip()


def _is_complete(status: CaptureStatus) -> bool:
    return status.is_complete


def _has_diagnosis(status: CaptureStatus) -> bool:
    return status.diagnosis != "Pending"


def _target_name(result: Body) -> str:
    return str(result.get("file") or result["pod"])


_RESULTS: list[TableColumn[Body]] = [
    TableColumn("POD", lambda each: str(each["pod"])),
    TableColumn("RANK", lambda each: str(each.get("rank", DASH)), is_number=True),
    TableColumn("STATE", lambda each: str(each["state"]), colours=STATE_COLOURS),
    TableColumn("REASON", lambda each: str(each["reason"])),
    TableColumn("SIZE", lambda each: size(each.get("bytes")), is_number=True),
    TableColumn("NODE", lambda each: str(each.get("node") or DASH), is_wide=True),
    TableColumn("FILE", lambda each: str(each.get("file") or DASH), is_wide=True),
    TableColumn("MESSAGE", lambda each: str(each.get("message") or DASH)),
]
