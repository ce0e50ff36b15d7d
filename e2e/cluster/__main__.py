"""Command line: `python -m cluster up|down|status|kubeconfig|tools`."""

import argparse
import sys

from cluster.progress import ClusterError, say
from cluster.providers import provider
from cluster.tools import TOOLS, tool


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ClusterError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("up", help="make a cluster, or do nothing if it runs").set_defaults(run=_up)
    commands.add_parser("down", help="remove the cluster and what it made").set_defaults(run=_down)
    commands.add_parser("status", help="say which part runs").set_defaults(run=_status)
    commands.add_parser("kubeconfig", help="print the kubeconfig's path").set_defaults(run=_kubeconfig)
    tools = commands.add_parser("tools", help="get tools (all, or those named) and print their paths")
    tools.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TOOLS))
    tools.set_defaults(run=_tools)
    return parser


def _up(_: argparse.Namespace) -> None:
    chosen = provider()
    chosen.up()
    say(f"cluster `{chosen.name}` is up: export KUBECONFIG={chosen.kubeconfig}")


def _down(_: argparse.Namespace) -> None:
    provider().down()


def _status(_: argparse.Namespace) -> None:
    chosen = provider()
    print(f"provider: {chosen.name}", *chosen.status(), sep="\n")


def _kubeconfig(_: argparse.Namespace) -> None:
    print(provider().kubeconfig)


def _tools(options: argparse.Namespace) -> None:
    for name in options.names or TOOLS:
        print(tool(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
