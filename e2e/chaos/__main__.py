"""`python -m chaos [NAME…] [--short] [--list]`: run attacks and disruptions on a cluster and print their table."""

import argparse
import sys

from cluster import addons
from cluster.progress import ClusterError, echo, step
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import tool
from demo import installation
from demo.kubectl import Kubectl
from release.parts import OPERATOR, PARTS
from rich.console import Console

from chaos import scenarios, table
from chaos.attacks import ATTACKS
from chaos.automatic import AUTOMATIC
from chaos.disruptions import DISRUPTIONS
from chaos.stage import Stage

ALL = {**ATTACKS, **DISRUPTIONS, **AUTOMATIC}
WIDTH = 240


def main(arguments: list[str]) -> int:
    """Run the chosen scenarios; return 1 if one failed."""
    options = _parser().parse_args(arguments)
    if unknown := [name for name in options.names if name not in ALL]:
        echo(f"{', '.join(unknown)}: no such scenario; choose from {', '.join(ALL)}")
        return 2
    chosen = [
        each for each in ALL.values() if each.name in (options.names or ALL) and (each.short or not options.short)
    ]
    if options.list:
        print(*(f"{each.name:24} {each.title}" for each in chosen), sep="\n")
        return 0
    rows = {}
    try:
        stage = installed(provider())
        for each in chosen:
            with step(f"{each.name}: {each.title}"):
                rows[each.name] = seen = scenarios.measure(each, stage)
            echo(
                "  "
                + ", ".join(map(" ".join, zip(table.HEADINGS[1:-1], table.row(each.name, seen)[1:-1], strict=True)))
            )
            for problem in seen.problems():
                echo(f"  FAILED: {problem[: table.LONGEST]}")
    except ClusterError as error:
        echo(f"\nThe chaos suite stopped: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    table.show(console, rows)
    return int(any(seen.problems() for seen in rows.values()))


def installed(chosen: Provider) -> Stage:
    """Return the stage on a cluster with both charts; an operator stands by for the disruptions of the leader."""
    chosen.up()
    kubectl = Kubectl(tool("kubectl"), chosen.kubeconfig)
    helm = installation.Helm(tool("helm"), chosen.kubeconfig)
    addons.install("jobset", chosen)
    for part in PARTS:
        values = installation.load_image(part, chosen) + (["--set=replicas=2"] if part is OPERATOR else [])
        with step(f"helm install {part.name}", about_s=25):
            installation.install(part, helm, values)
    stage = Stage(chosen, kubectl)
    stage.prepare()
    return stage


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; default: all")
    parser.add_argument("--short", action="store_true", help="only those of the short form")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
