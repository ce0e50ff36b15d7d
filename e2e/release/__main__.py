"""Command line: `python -m release manifests|version|images|package`."""

import argparse
import sys

from cluster.progress import ClusterError, echo

from release import manifests, package, version
from release.parts import PARTS


def main(arguments: list[str]) -> int:
    """Run one command; return 1 and print the reason to standard error if it fails."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("manifests", help="write kustomize/ and the READMEs of the charts").set_defaults(run=_manifests)
    numbered = commands.add_parser("version", help="print the version, or write another one into all files")
    numbered.add_argument("new", nargs="?", default="", help="such as 1.2.3 or 1.2.3-rc.1")
    numbered.set_defaults(run=_version)
    for name, run, text in (
        ("images", _images, "build the images and print the paths of their archives"),
        ("package", _package, "write images, charts and YAML to dist/"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--version", default=version.current())
        command.add_argument("--registry", required=True)
        command.add_argument("--source", default="", help="URL of the repository, for home and sources of the charts")
        command.set_defaults(run=run)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except ClusterError as error:
        echo(f"error: {error}")
        return 1
    return 0


def _manifests(_: argparse.Namespace) -> None:
    for path in manifests.write():
        echo(f"wrote {path}")


def _version(options: argparse.Namespace) -> None:
    if options.new:
        for path in version.change(options.new):
            echo(f"wrote {path}")
    print(version.current())


def _images(options: argparse.Namespace) -> None:
    for part in PARTS:
        print(package.image(part, options.version, options.registry))


def _package(options: argparse.Namespace) -> None:
    package.package(options.version, options.registry, options.source)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
