"""`mldiag capture --open`: XProf in a browser, at the session that was captured."""

from __future__ import annotations

import asyncio
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import xprof_page
from mldiagnostics.locations import is_bucket, is_on_volume
from mldiagnostics.store import open_store

from mldiagnostics_cli.captures.settings import DEFAULT_DIRECTORY
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.output import note
from mldiagnostics_cli.profiles.copying import copy_session, files_of
from mldiagnostics_cli.profiles.references import find_session, opened
from mldiagnostics_cli.xprof.hosting import host_here
from mldiagnostics_cli.xprof.in_cluster import find_shown, forward_in_cluster
from mldiagnostics_cli.xprof.limits import IDLE_S

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.captures.ending import CaptureEnd
    from mldiagnostics_cli.xprof.instances import XprofInstance


def open_capture(end: CaptureEnd, options: ClusterOptions) -> None:
    """Open the session of a capture in the server of its log directory.

    A server in the cluster that shows the directory is connected until Ctrl-C. Without one, it is that of this
    machine, which is started if there is none; a session on the operator's volume is copied to this machine before.

    Raises:
        ConfigurationError: The traces are in pods, or XProf is not installed.
        ClusterFailure: The user may not read the operator's volume.
        StoreError: The copy cannot be written.
    """
    directory = end.directory
    if end.namespace and (is_on_volume(directory) or is_bucket(directory)):
        of_capture = replace(options, namespace=end.namespace)
        if (shown := asyncio.run(find_shown(of_capture, directory))) is not None:
            server, below = shown
            note(f"XProf {server.name} in namespace {server.namespace} shows the session.")
            asyncio.run(_connect(of_capture, server, f"{below}{end.session}"))
            return
    if is_on_volume(directory):
        directory = _copied(end, replace(options, namespace=end.namespace))
    elif end.namespace and not is_bucket(directory):
        raise ConfigurationError(f"--open: the traces are in the pods, in {directory}; copy them with `kubectl cp`")
    url = host_here(directory, idle_s=IDLE_S).url + xprof_page(end.session)
    note(f"XProf: {url}")
    webbrowser.open(url)


async def _connect(options: ClusterOptions, server: XprofInstance, run: str) -> None:
    """Forward a port to a server until Ctrl-C, and open a session that it calls `run`."""

    def opened(port: int) -> None:
        url = f"http://127.0.0.1:{port}/{xprof_page(run)}"
        note(f"XProf: {url}")
        note("Ctrl-C ends the connection; the server goes on.")
        webbrowser.open(url)

    await forward_in_cluster(options, server, port=0, opened=opened)


def _copied(end: CaptureEnd, options: ClusterOptions) -> str:
    """Copy a session from the operator's volume; return its local log directory."""
    reference = f"{end.directory}/{end.session}"
    with opened(SourceChoice(cluster=options), [reference]) as source:  # noqa: SIM117 - the second one needs the first
        with source.fetched_session(find_session(source, reference)) as session:
            copied = copy_session(files_of(session.url, session.name), open_store(DEFAULT_DIRECTORY), session.name)
    note(f"Copied from the operator's volume: {copied.url}")
    return DEFAULT_DIRECTORY
