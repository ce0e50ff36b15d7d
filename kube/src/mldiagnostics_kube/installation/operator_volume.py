"""Copies of files on the operator's volume, through the operator's pods.

The caller needs the right to run programs there.
"""

from __future__ import annotations

import shutil
import tarfile
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError, path_to
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_kube.client.pod_exec import PodContainer, ProgramFailed, run_in_container

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient


NAMESPACE: Final = "gke-mldiagnostics"
"""Namespace of the charts in the documentation; used if pods of all namespaces cannot be listed."""
PRODUCT: Final = "app.kubernetes.io/part-of=mldiagnostics"
_OPERATOR: Final = "operator"
"""Name of the container in the chart."""

_MISSING: Final = 3
_PROGRAM: Final = """
import os, stat, sys, tarfile
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
folder = os.open(os.environ.get("MLDIAG_VOLUME_ROOT", "/var/lib/mldiagnostics"), os.O_RDONLY)
try:
    for part in filter(None, sys.argv[1].split("/")):
        folder = os.open(part, READ | os.O_DIRECTORY, dir_fd=folder)
except OSError:
    sys.exit(3)
suffixes = tuple(sys.argv[2:])
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", dereference=True) as archive:
    for path, _, names, directory in os.fwalk(".", dir_fd=folder):
        for name in sorted(names):
            try:
                if not (name.endswith(suffixes) and stat.S_ISREG(os.lstat(name, dir_fd=directory).st_mode)):
                    continue
                opened = os.open(name, READ, dir_fd=directory)
            except OSError:
                continue
            with open(opened, "rb") as file:
                entry = archive.gettarinfo(arcname=os.path.normpath(os.path.join(path, name)), fileobj=file)
                if entry.isreg():
                    archive.addfile(entry, file)
"""
"""The image has Python, but neither a shell nor tar. Tenants write the volume: a link is never followed, not even one
that replaces a directory or a file meanwhile, and a pipe is never waited for."""


async def copy_from_volume(
    client: ApiClient, location: str, suffixes: Sequence[str], write: Callable[[bytes], object], *, cluster: str
) -> None:
    """Copy the files below a directory of the operator's volume as a tar archive.

    Without a claim each pod of the operator has a volume of its own, so all of them are tried. The leader is the first:
    the others have what was written while they led. One that cannot be read, such as a replica that ends, is skipped.

    Args:
        client: Client of the cluster, with the rights of the caller.
        location: `volume:///…`.
        suffixes: Only files whose names end so.
        write: Called with each part of the archive, which is not whole if this raises.
        cluster: The cluster in messages.

    Raises:
        ConfigurationError: No pod of the operator has the directory.
        ClusterFailure: The caller may not list the pods or run programs in them, or some pods could not be read and no
            other has the directory.
        ClusterError: The connection to a pod broke while it sent the archive, or the cluster cannot be reached.
    """
    directory = location.partition("://")[2].strip("/")
    if ".." in directory.split("/"):
        raise ConfigurationError(f"{location}: not a directory of the volume; remove '..'")
    command = ["python", "-c", _PROGRAM, directory, *suffixes]
    containers = await _leader_first(client, await _list_containers(client))
    unreadable: list[str] = []
    copied = 0

    def forward(part: bytes) -> None:
        nonlocal copied
        copied += len(part)
        write(part)

    for container in containers:
        try:
            if await _is_copied(client, container, command, forward):
                return
        except ClusterError as error:
            if error.status in NOT_PERMITTED:
                raise _not_permitted(location, container, cluster, status=error.status) from error
            if copied:  # the archive of another pod would follow half of this one
                raise
            unreadable.append(f"pod {container.namespace}/{container.pod} ({_problem(error)})")
    if unreadable:
        raise ClusterFailure(
            f"{location}: the volume could not be read in {', '.join(unreadable)}; "
            "run the command again when the pods of the operator are ready",
            status=0,
        )
    raise _no_directory(location, cluster, has_operator=bool(containers))


def _not_permitted(location: str, container: PodContainer, cluster: str, *, status: int) -> ClusterFailure:
    return ClusterFailure(
        f"{location}: lies on the operator's volume, and {cluster} does not let you run programs in pod "
        f"{container.namespace}/{container.pod}; ask the administrator for the right to create pods/exec there, or "
        "capture to a bucket with --log-directory s3://…",
        status=status,
    )


def _no_directory(location: str, cluster: str, *, has_operator: bool) -> ConfigurationError:
    if not has_operator:
        return ConfigurationError(
            f"{location}: no pod of the operator runs in {cluster}; `mldiag doctor` checks the installation"
        )
    return ConfigurationError(
        f"{location}: the operator's volume has no such directory; without a claim its files end with the operator's "
        "pod, so set the chart's value volume.claim.enabled"
    )


async def _leader_first(client: ApiClient, containers: Sequence[PodContainer]) -> list[PodContainer]:
    """Return the containers, leaders first if the caller may read the Leases."""
    leaders: set[tuple[str, str]] = set()
    for namespace in {container.namespace for container in containers}:
        with suppress(ClusterError):
            leases = await client.items(path_to("coordination.k8s.io", "v1", "leases", namespace=namespace), _holder)
            leaders |= {(namespace, holder) for holder in leases}
    return sorted(containers, key=lambda container: (container.namespace, container.pod) not in leaders)


def _holder(lease: Mapping[str, Any]) -> str:
    """Return the pod in the holder of a Lease, `<pod>/<uid>/<process>`."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "").partition("/")[0]


async def _is_copied(
    client: ApiClient, container: PodContainer, command: Sequence[str], write: Callable[[bytes], object]
) -> bool:
    """Copy from one container; return False if it does not have the directory."""
    try:
        await run_in_container(client, container, command, write)
    except ProgramFailed as failure:
        if failure.code != _MISSING:
            raise
        return False
    return True


def _problem(error: ClusterError) -> str:
    return " ".join((error.cause if error.status else error.detail or error.cause).split())


def extract(archive: BinaryIO, folder: Path) -> None:
    """Write the regular files of an archive below a folder.

    The safe filter of `tarfile` is missing in Python 3.11.0 to 3.11.3.

    Raises:
        ConfigurationError: It is not an archive, or a name leads out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=archive, mode="r:") as files:  # a compressed one may have a thousand times its size
            for member in files:
                _extract_one(files, member, folder)
    except tarfile.TarError as error:
        raise ConfigurationError(f"the copy of the operator's volume: {error}; run the command again") from error


def _extract_one(files: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigurationError(f"{member.name}: leads out of the directory that was copied; look at it in the volume")
    is_plain = member.isreg() and not member.issparse()  # holes may be larger than any disk
    content = files.extractfile(member) if is_plain else None
    if content is not None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        with part.open("wb") as file:
            shutil.copyfileobj(content, file)
        part.replace(target)  # a reader of an earlier copy never sees a part of this one


async def operator_containers(client: ApiClient) -> list[PodContainer]:
    """Return the operator's containers that run; none if the caller may not see them.

    Raises:
        ClusterError: The cluster cannot be reached.
    """
    try:
        return await _list_containers(client)
    except ClusterError as error:
        if error.status not in NOT_PERMITTED:
            raise
        return []


async def _list_containers(client: ApiClient) -> list[PodContainer]:
    """Return the operator's containers of all namespaces, else of the usual one."""
    for namespace in (None, NAMESPACE):
        path = path_to("", "v1", "pods", namespace=namespace)
        try:
            return await client.items(path, _container, labels=PRODUCT)
        except ClusterError as error:
            if namespace is not None or error.status not in NOT_PERMITTED:
                raise
    return []


def _container(pod: Mapping[str, Any]) -> PodContainer | None:
    metadata = pod["metadata"]
    is_operator = any(each["name"] == _OPERATOR for each in pod["spec"]["containers"])
    if not is_operator or pod.get("status", {}).get("phase") != "Running" or "deletionTimestamp" in metadata:
        return None
    return PodContainer(metadata["namespace"], metadata["name"], _OPERATOR)
