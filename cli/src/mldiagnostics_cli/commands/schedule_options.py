"""Options of automatic captures: times and triggers."""

from __future__ import annotations

import click

from mldiagnostics_cli.commands.completed_values import complete_triggers

cron_option = click.option(
    "--cron", metavar="EXPRESSION", help="Capture at these times: minute hour day month weekday."
)
time_zone_option = click.option(
    "--time-zone", metavar="NAME", help="Time zone of --cron, such as Europe/Berlin; default: UTC."
)
trigger_option = click.option(
    "--trigger",
    "triggers",
    multiple=True,
    metavar="TYPE[=PERCENT]",
    shell_complete=complete_triggers,
    help="Capture a run at StepTimeRise, StepTimeSpread, Hanging, Straggling or GoodputLow; may be repeated.",
)
