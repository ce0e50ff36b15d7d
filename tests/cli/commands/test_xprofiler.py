"""The flags of `mldiag xprofiler` are those of xprofiler's documentation, with their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest
from mldiagnostics_cli.commands.xprofiler import xprofiler

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRED = "required"
MANY = "..."
"""After the flags of an option that takes several values."""

DOCUMENTED: dict[str, dict[str, Any]] = {
    "capture": {
        "-l --log-directory": REQUIRED,
        "-z --zone": REQUIRED,
        "-n --hosts ...": REQUIRED,
        "-f --framework": REQUIRED,
        "-o --orchestrator": "gce",
        "-p --port": 9012,
        "-d --duration": 2000,
        "-u --use-ssh-proxy": False,
        "--non-tpu-vm": False,
        "-v --verbose": False,
    },
    "create": {
        "-l --log-directory": REQUIRED,
        "-z --zone": REQUIRED,
        "-n --vm-name": None,
        "-m --machine-type": "c4-highmem-8",
        "--auto-delete-on-failure-off": False,
        "--skip-creation-if-exists": False,
        "--gke": False,
        "-v --verbose": False,
    },
    "list": {
        "-z --zones --zone ...": None,  # argparse accepts the beginning of a flag too
        "-l --log-directory ...": None,
        "-n --vm-name ...": None,
        "--gke": False,
        "-f --filter ...": None,
        "-v --verbose": False,
    },
    "delete": {
        "-z --zone": REQUIRED,
        "-l --log-directory ...": None,
        "-n --vm-name ...": None,
        "--gke": False,
        "-q --quiet": False,
        "-v --verbose": False,
    },
    "connect": {
        "-l --log-directory": REQUIRED,
        "-z --zone": REQUIRED,
        "-m --mode": "ssh",
        "-p --port": 6006,
        "--host-port": 6006,
        "-d --disconnect": False,
        "-u --use-ssh-proxy": False,
        "-v --verbose": False,
    },
    "register": {
        "-l --log-directory": REQUIRED,
        "-r --region": REQUIRED,
        "-m --ml-run-name": REQUIRED,
        "-s --run-set": REQUIRED,
        "-p --project-id": REQUIRED,
        "-v --verbose": False,
    },
}
OWN = {"create": {"--image"}}
"""Flags that xprofiler has not, by command."""

CHOICES = {
    ("capture", "--framework"): ["pytorch", "jax", "tensorflow"],
    ("capture", "--orchestrator"): ["gce", "gke"],
    ("connect", "--mode"): ["ssh", "proxy"],
}


def test_the_commands_are_those_of_xprofiler() -> None:
    assert set(xprofiler.commands) == set(DOCUMENTED)
    assert [option.opts for option in options(xprofiler)] == [["-a", "--abbrev"]]


@pytest.mark.parametrize("command", DOCUMENTED)
def test_a_command_has_the_documented_flags_with_their_defaults(command: str) -> None:
    defaults = {
        " ".join([*option.opts, *[MANY] * option.multiple]): REQUIRED if option.required else default(option)
        for option in options(xprofiler.commands[command])
        if not OWN.get(command, set()) & set(option.opts)
    }
    assert defaults == DOCUMENTED[command]


@pytest.mark.parametrize(("command", "flag"), CHOICES)
def test_a_flag_has_the_documented_choices(command: str, flag: str) -> None:
    [option] = [each for each in options(xprofiler.commands[command]) if flag in each.opts]
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == CHOICES[command, flag]


def options(command: click.Command) -> Iterator[click.Option]:
    for parameter in command.params:
        assert isinstance(parameter, click.Option), "xprofiler has no arguments without a flag"
        yield parameter


def default(option: click.Option) -> Any:
    """Return the value of an option that is not given."""
    context = click.Context(click.Command("any"))
    value = option.get_default(context)
    return None if option.multiple or not isinstance(value, str | int | bool) else value
