"""`make publish`: push images and charts, sign them, and attach the bill of materials.

A dry run prints the commands, and checks that the files and programs exist.
"""

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from cluster.command import run
from cluster.paths import REPOSITORY
from cluster.platforms import architecture
from cluster.progress import ClusterError, echo
from cluster.tools import tool

from release import notes, package
from release.package import DIST, chart_archive, image_archive, reference, sbom_file
from release.parts import IMAGES, PARTS, Image, Part

UNKNOWN_DIGEST = "sha256:DIGEST"


class Commands:
    """Runs commands, or prints them in a dry run."""

    def __init__(self, *, dry_run: bool) -> None:
        self.dry_run = dry_run

    def __call__(self, *words: str | Path) -> str:
        """Run one command and return its whole output; in a dry run print it and return an empty text.

        Raises:
            ClusterError: the program does not exist, or it failed.
        """
        command = [str(word) for word in words]
        if self.dry_run:
            echo(f"  {shlex.join([Path(command[0]).name, *command[1:]])}")
            return ""
        if shutil.which(command[0]) is None:
            raise ClusterError(f"{command[0]}: is not installed; install it, or use DRY_RUN=1")
        echo(f"$ {shlex.join(command)}")
        return run(command, logs_to_output=True)


def publish(version: str, registry: str, platforms: Sequence[str], *, signed: bool, dry_run: bool) -> None:
    """Push and sign everything that `make package` has written for this version, registry and platforms.

    Args:
        version: Version of the release.
        registry: Registry and path of the images; charts are pushed below `charts`.
        platforms: Platforms of the images; empty is that of the machine that made the package.
        signed: Whether images and charts are signed, without a key of ours (cosign, keyless).
        dry_run: Whether commands are printed only.

    Raises:
        ClusterError: a file of the package is missing, or a command failed.
    """
    if missing := [path for path in _files(version, platforms) if not path.exists()]:
        raise ClusterError(
            f"{missing[0].relative_to(REPOSITORY)}: does not exist; run make package and make wheels first"
        )
    commands = Commands(dry_run=dry_run)
    if dry_run:
        absent = [name for name in ("docker", "cosign") if shutil.which(name) is None]
        echo(f"Not installed here: {', '.join(absent) or 'nothing'}\nThese commands publish {version}:")
    for part in IMAGES:
        image = _push_image(commands, part, version, registry, platforms)
        charts = [_push_chart(commands, part, version, registry)] if isinstance(part, Part) else []
        if signed:
            for each in (image, *charts):
                commands("cosign", "sign", "--yes", each)
            predicate = f"--predicate={sbom_file(part, version)}"
            commands("cosign", "attest", "--yes", "--type=spdxjson", predicate, image)


def announce(version: str, *, dry_run: bool) -> None:
    """Make the release of the repository on GitHub, with its notes and files.

    Raises:
        ClusterError: the changelog has no section of this version, or the command failed.
    """
    text = DIST / "notes.md"
    text.parent.mkdir(exist_ok=True)
    text.write_text(notes.section((REPOSITORY / "CHANGELOG.md").read_text(), version))
    files = package.files(version)
    prerelease = ["--prerelease"] if "-rc." in version else []
    verify = ["--verify-tag", f"--title={version}", f"--notes-file={text}"]
    Commands(dry_run=dry_run)("gh", "release", "create", f"v{version}", *verify, *prerelease, *files)


def _files(version: str, platforms: Sequence[str]) -> list[Path]:
    images = [image_archive(part, version, each) for part in IMAGES for each in platforms or [""]]
    charts = [chart_archive(part, version) for part in PARTS]
    return [*images, *charts, *(sbom_file(part, version) for part in IMAGES)]


def _push_image(commands: Commands, part: Image, version: str, registry: str, platforms: Sequence[str]) -> str:
    """Push the images of all platforms under one name; return it with its digest."""
    name = reference(part, version, registry)
    names = [f"{name}-{architecture(each)}" for each in platforms] or [name]
    for each, archive in zip(names, [image_archive(part, version, each) for each in platforms or [""]], strict=True):
        commands("docker", "load", f"--input={archive}")
        commands("docker", "push", each)
    if platforms:
        commands("docker", "buildx", "imagetools", "create", f"--tag={name}", *names)
    digest = commands("docker", "buildx", "imagetools", "inspect", "--format={{.Manifest.Digest}}", name).strip()
    return f"{name.rpartition(':')[0]}@{digest or UNKNOWN_DIGEST}"


def _push_chart(commands: Commands, part: Part, version: str, registry: str) -> str:
    """Push a chart; return its name with its digest."""
    charts = f"{registry.rstrip('/')}/charts"
    pushed = commands(tool("helm"), "push", chart_archive(part, version), f"oci://{charts}")
    digest = re.search(r"Digest: (sha256:[0-9a-f]{64})", pushed)
    if digest is None and not commands.dry_run:
        raise ClusterError(f"helm push: printed no digest of {part.name}: {pushed}")
    return f"{charts}/{part.name}@{digest[1] if digest else UNKNOWN_DIGEST}"
