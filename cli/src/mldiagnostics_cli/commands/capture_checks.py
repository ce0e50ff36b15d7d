"""Checks of the options of `mldiag capture`, before anything is contacted."""

from __future__ import annotations

import click


def check_options(context: click.Context, *, is_repeated: bool) -> None:
    """Raise `UsageError` if options are given that exclude each other."""
    given = context.params
    repeating = next((f"--{name}" for name in ("every", "cron") if given[name]), "--trigger")
    if is_repeated and given["session"] is not None:
        raise click.UsageError(f"{repeating} and --session: both are given; pass only one of them", context)
    if not is_repeated and (single := typed_options(context, "time_zone", "per_day")):
        raise click.UsageError(f"{single[0]}: no --every, --cron or --trigger is given; pass one of them", context)
    if given["past"] and (single := typed_options(context, "duration", "pulse")):
        raise click.UsageError(f"--past and {single[0]}: both are given; the past has no duration", context)
    if given["pulse"] and given["no_diagnosis"]:
        raise click.UsageError("--pulse and --no-diagnosis: both are given; a pulse is made for a diagnosis", context)
    if given["pulse"] and typed_options(context, "duration"):
        from mldiagnostics_api.v1alpha1.shared import LONGEST_PULSE_MS

        if given["duration"] > LONGEST_PULSE_MS:
            raise click.UsageError(
                f"--pulse: takes at most {LONGEST_PULSE_MS}ms; pass a shorter --duration, or omit it", context
            )
    if given["open_page"] and (is_repeated or given["wait"] is False):
        other = repeating if is_repeated else "--detach"
        raise click.UsageError(f"--open and {other}: both are given; pass only one of them", context)
    machines, others = [given["vms"], given["tpu_vms"]], [given["target"], given["files"], given["slurm_job"]]
    if any(machines) and (given["zone"] is None or all(machines) or any(others)):
        raise click.UsageError(
            "--gce-vm or --tpu-vm: pass only one of them, with --zone and without other targets", context
        )
    if given["zone"] is not None and not any(machines):
        raise click.UsageError("--zone: is the zone of VMs; pass it with --gce-vm or --tpu-vm", context)


def typed_options(context: click.Context, *names: str) -> list[str]:
    """Return the options among the named parameters that the user gives; --wait is never one, --detach is."""
    by_name = {each.name: each for each in context.command.params}
    given = [name for name in names if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    return [
        (by_name[name].secondary_opts or by_name[name].opts)[-1]
        for name in given
        if not (by_name[name].secondary_opts and context.params[name])
    ]


def refuse_options(context: click.Context, targets: str, *names: str) -> None:
    """Raise `UsageError` if an option is given that these targets do not have."""
    if options := typed_options(context, *names):
        raise click.UsageError(f"{options[0]}: not possible with {targets}; leave it out", context)
