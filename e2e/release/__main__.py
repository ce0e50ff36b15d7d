"""Command line: `python -m release manifests|version|images|package|notes|publish|announce`."""

import argparse
import sys

from cluster import platforms
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, echo

from release import manifests, notes, package, publish, version
from release.parts import IMAGES


def main(arguments: list[str]) -> int:
    """Run one command; return 1 and print the reason to standard error if it fails."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("manifests", help="write kustomize/ and the READMEs of the charts").set_defaults(run=_manifests)
    numbered = commands.add_parser("version", help="print the version, or write another one into all files")
    numbered.add_argument("new", nargs="?", default="", help="such as 1.2.3 or 1.2.3-rc.1")
    numbered.set_defaults(run=_version)
    built = argparse.ArgumentParser(add_help=False)
    built.add_argument("--version", default=version.current())
    built.add_argument("--registry", required=True)
    built.add_argument("--source", default="", help="URL of the repository, for home and sources of the charts")
    built.add_argument("--platform", default="", help="such as linux/amd64,linux/arm64; default: this machine's")
    images = commands.add_parser("images", parents=[built], help="build the images and print their archives")
    images.set_defaults(run=_images)
    packaged = commands.add_parser("package", parents=[built], help="write images, charts and YAML to dist/")
    packaged.set_defaults(run=_package)
    published = commands.add_parser("publish", parents=[built], help="push and sign what `package` has written")
    published.add_argument("--unsigned", action="store_true", help="push without signatures")
    published.add_argument("--dry-run", action="store_true", help="print the commands")
    published.set_defaults(run=_publish)
    noted = commands.add_parser("notes", help="print the release notes of a version")
    noted.add_argument("--version", default=version.current())
    noted.set_defaults(run=_notes)
    announced = commands.add_parser("announce", help="make the release on GitHub, with notes and files")
    announced.add_argument("--version", default=version.current())
    announced.add_argument("--dry-run", action="store_true", help="print the command")
    announced.set_defaults(run=_announce)
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
    for part in IMAGES:
        for platform in _platforms(options) or [""]:
            print(package.image(part, options.version, options.registry, platform, options.source))


def _package(options: argparse.Namespace) -> None:
    package.package(options.version, options.registry, options.source, _platforms(options))


def _publish(options: argparse.Namespace) -> None:
    signed, dry_run = not options.unsigned, options.dry_run
    publish.publish(options.version, options.registry, _platforms(options), signed=signed, dry_run=dry_run)


def _notes(options: argparse.Namespace) -> None:
    if options.version != version.current():
        raise ClusterError(
            f"version {options.version}: this checkout has {version.current()}; tag that, or run make release"
        )
    print(notes.section((REPOSITORY / "CHANGELOG.md").read_text(), options.version), end="")


def _announce(options: argparse.Namespace) -> None:
    publish.announce(options.version, dry_run=options.dry_run)


def _platforms(options: argparse.Namespace) -> list[str]:
    try:
        return platforms.parse(options.platform)
    except ValueError as error:
        raise ClusterError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
