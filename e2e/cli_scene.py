"""The command line of a user of the cluster, in a namespace of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.provider import Provider


def command_line(cluster: Provider, folder: Path, namespace: str, *, user: str = "") -> CommandLine:
    """Return the command line with a kubeconfig of its own.

    Args:
        cluster: The cluster, whose administrator it is by default.
        folder: Folder of its files.
        namespace: Namespace of its context.
        user: User whom the administrator impersonates.
    """
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    if user:
        config["users"][0]["user"]["as"] = user
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    env = {"KUBECONFIG": str(file), "XDG_STATE_HOME": str(folder / "state"), "BROWSER": str(folder / "browser")}
    return CommandLine(folder, env=env)
