"""The Docker engine, through its command line.

Files go through standard input and output: the client may be confined to some folders, as the snap is.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from cluster import ambient
from cluster.progress import ClusterError, tail

# An attestation makes an index of the image, which importers of `docker save` archives do not read.
_BUILD_ENVIRONMENT = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1", "DOCKER_BUILDKIT": "1"}
_START = (
    "start Docker Desktop or Colima" if sys.platform == "darwin" else "start it, such as with `systemctl start docker`"
)


def obstacle() -> str | None:
    """Return the reason why there is no engine to use, with a remedy; None if there is one."""
    if shutil.which("docker") is None:
        return "the command docker does not exist; install Docker"
    engine = _run("version", "--format={{.Server.Version}}")
    if not engine.returncode:
        return None
    if "permission denied" in engine.stderr.lower():
        return "this user may not use the Docker engine; join the group docker and log in again"
    return f"no Docker engine answers ({_last(engine.stderr)}); {_START}"


def builder_obstacle() -> str | None:
    """Return the reason why the engine cannot build images, with a remedy; None if it can."""
    if reason := obstacle():
        return reason
    if _run("buildx", "version").returncode:
        return "Docker has no plugin buildx; install docker-buildx-plugin (from Docker) or docker-buildx (from others)"
    return None


def privileged_obstacle(image: str, archive: Path) -> str | None:
    """Return the reason why privileged containers are rejected, tried with a tiny image; None if they run."""
    try:
        load(archive)
    except ClusterError as error:
        return str(error)
    probe = _run("run", "--rm", "--privileged", "--network=none", image, "--check")
    _run("image", "rm", "--force", image)
    return f"the Docker engine rejects privileged containers ({_last(probe.stderr)})" if probe.returncode else None


def build(context: Path, reference: str, arguments: Sequence[str]) -> None:
    """Build an image from a context with a Dockerfile."""
    with tempfile.TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(context, arcname=".")
        packed.seek(0)
        _must("buildx", "build", "--load", f"--tag={reference}", *arguments, "-", given=packed)


def platforms() -> list[str]:
    """Return the platforms for which the engine can build, such as `linux/arm64`."""
    inspection = _run("buildx", "inspect", "--bootstrap").stdout
    listed = [line.partition(":")[2] for line in inspection.splitlines() if line.strip().startswith("Platforms:")]
    return [each.strip().rstrip("*") for line in listed for each in line.split(",") if each.strip()]


def digest(reference: str) -> str | None:
    """Return the digest of an image in its registry; None if it cannot be read."""
    inspection = _run("buildx", "imagetools", "inspect", "--format={{.Manifest.Digest}}", reference)
    return None if inspection.returncode else inspection.stdout.strip()


def load(archive: Path) -> None:
    """Load the images of an archive into the engine."""
    with archive.open("rb") as stream:
        _must("load", "--quiet", given=stream)


def save(reference: str, archive: Path) -> None:
    """Write an image of the engine to an archive."""
    with archive.open("wb") as stream:
        _must("save", reference, to=stream)


def pull_failure(image: str) -> str | None:
    """Pull an image unless the engine has it; return why that failed, None for success."""
    if not _run("image", "inspect", image).returncode:
        return None
    pull = _run("pull", "--quiet", image)
    return _last(pull.stderr) if pull.returncode else None


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], env=ambient.environment(), capture_output=True, text=True, check=False
    )


def _must(*arguments: str, given: IO[bytes] | None = None, to: IO[bytes] | None = None) -> None:
    environment = ambient.environment() | _BUILD_ENVIRONMENT
    done = subprocess.run(
        ["docker", *arguments],
        stdin=given or subprocess.DEVNULL,
        stdout=to or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if done.returncode:
        log = tail(done.stderr.decode(errors="replace"), 30)
        raise ClusterError(f"`docker {' '.join(arguments)}` ended with {done.returncode}:\n{log}")


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
