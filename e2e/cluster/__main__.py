"""Command line: `python -m cluster up|down|status|kubeconfig|tools|addon|image`."""

import argparse
import sys
from pathlib import Path

from cluster import addons, images
from cluster.addons import ADDONS
from cluster.progress import ClusterError, echo
from cluster.providers import provider, removable
from cluster.tools import TOOLS, tool


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ClusterError as error:
        echo(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("up", help="start a cluster, unless it runs").set_defaults(run=_up)
    commands.add_parser("down", help="remove the cluster and its files").set_defaults(run=_down)
    commands.add_parser("status", help="show which parts run").set_defaults(run=_status)
    commands.add_parser("kubeconfig", help="print the kubeconfig's path").set_defaults(run=_kubeconfig)
    addon = commands.add_parser("addon", help="install a controller of another project")
    addon.add_argument("name", choices=ADDONS)
    addon.set_defaults(run=_install)
    image = commands.add_parser("image", help="build an image and load it into the cluster")
    image.add_argument("folder", type=Path, help="folder of the Dockerfile")
    image.add_argument("tag", help="full name of the image")
    image.add_argument("--context", type=Path, help="build context; default: the folder of the Dockerfile")
    image.add_argument("--build-only", action="store_true", help="print the path of the archive instead of loading it")
    image.set_defaults(run=_image)
    tools = commands.add_parser("tools", help="download or build tools (default: all) and print their paths")
    tools.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TOOLS))
    tools.set_defaults(run=_tools)
    return parser


def _up(_: argparse.Namespace) -> None:
    chosen = provider()
    chosen.up()
    echo(f"cluster `{chosen.name}` is running: export KUBECONFIG={chosen.kubeconfig}")


def _down(_: argparse.Namespace) -> None:
    for chosen in removable():
        chosen.down()


def _install(options: argparse.Namespace) -> None:
    addons.install(options.name, provider())


def _image(options: argparse.Namespace) -> None:
    archive = images.build(options.folder / "Dockerfile", options.context or options.folder, options.tag)
    if options.build_only:
        print(archive)
    else:
        images.load(archive, provider())


def _status(_: argparse.Namespace) -> None:
    chosen = provider()
    print(f"provider: {chosen.name}", *chosen.status(), sep="\n")
    if not chosen.running():
        raise ClusterError(f"cluster `{chosen.name}`: not running; start it with `python -m cluster up`")


def _kubeconfig(_: argparse.Namespace) -> None:
    print(provider().kubeconfig)


def _tools(options: argparse.Namespace) -> None:
    for name in options.names or TOOLS:
        print(tool(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
