"""Copies from the operator's volume, against a server that runs programs as the kubelet does, in directories."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.client.apiserver import ClusterError, Unavailable
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_kube.client.pod_exec import PodContainer, ProgramFailed, run_in_container
from mldiagnostics_kube.installation.operator_volume import copy_from_volume, extract, operator_containers
from support.cluster.volume_pods import Kubelet, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

SESSION = "ml/trainer/plugins/profile/try"
SUFFIXES = (".xplane.pb", ".json")


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    for name in ("first", "second"):
        (tmp_path / name / "ml").mkdir(parents=True)
    folder = tmp_path / "second" / SESSION
    folder.mkdir(parents=True)
    (folder / "a.xplane.pb").write_bytes(b"x" * 20_000)
    (folder / "capture.json").write_text("{}")
    (folder / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"a cache of XProf")
    (folder / "secret.json").symlink_to("/etc/passwd")
    return Kubelet(tmp_path)


@pytest.fixture
async def cluster(kubelet: Kubelet) -> AsyncIterator[ApiClient]:
    async with serving(kubelet) as client:
        yield client


async def test_a_directory_is_copied_from_the_pod_that_has_it(cluster: ApiClient, kubelet: Kubelet) -> None:
    archive = io.BytesIO()
    await copy_from_volume(cluster, f"volume:///{SESSION}", SUFFIXES, archive.write, cluster="cluster 'lab'")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        assert {each.name: each.size for each in files} == {"a.xplane.pb": 20_000, "capture.json": 2}
    assert kubelet.ran == ["first", "second"]


async def test_the_files_are_those_of_the_leader(cluster: ApiClient, kubelet: Kubelet) -> None:
    (kubelet.volumes / "first" / SESSION).mkdir(parents=True)  # of the time when it led
    (kubelet.volumes / "first" / SESSION / "old.json").write_text("{}")
    kubelet.leader = "second"
    archive = io.BytesIO()
    await copy_from_volume(cluster, f"volume:///{SESSION}", SUFFIXES, archive.write, cluster="cluster 'lab'")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        assert sorted(files.getnames()) == ["a.xplane.pb", "capture.json"]
    assert kubelet.ran == ["second"]


@pytest.mark.parametrize("fault", ["unready", "broken"])
async def test_a_pod_that_cannot_be_read_is_skipped(cluster: ApiClient, kubelet: Kubelet, fault: str) -> None:
    getattr(kubelet, fault).add("first")
    archive = io.BytesIO()
    await copy_from_volume(cluster, f"volume:///{SESSION}", SUFFIXES, archive.write, cluster="cluster 'lab'")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        assert sorted(files.getnames()) == ["a.xplane.pb", "capture.json"]


async def test_pods_that_could_not_be_read_are_named(cluster: ApiClient, kubelet: Kubelet) -> None:
    kubelet.unready.add("second")
    message = r"could not be read in pod ops/second \(the API server returned 500: .*\); run the command again when the"
    with pytest.raises(ClusterFailure, match=message):
        await copy_from_volume(cluster, f"volume:///{SESSION}", SUFFIXES, bytes, cluster="cluster 'lab'")
    assert kubelet.ran == ["first", "second"]


async def test_half_an_archive_is_never_followed_by_that_of_another_pod(cluster: ApiClient, kubelet: Kubelet) -> None:
    kubelet.pods.reverse()
    kubelet.broken.add("second")
    with pytest.raises(Unavailable, match="second: the connection to the program broke"):
        await copy_from_volume(cluster, f"volume:///{SESSION}", SUFFIXES, bytes, cluster="cluster 'lab'")
    assert kubelet.ran == ["second"]


async def test_failures_say_what_to_do(cluster: ApiClient, kubelet: Kubelet) -> None:
    async def copy(location: str) -> None:
        await copy_from_volume(cluster, location, SUFFIXES, bytes, cluster="cluster 'lab'")

    with pytest.raises(ConfigurationError, match=r"volume:///ml/none: the operator's volume has no such directory; "):
        await copy("volume:///ml/none")
    with pytest.raises(ConfigurationError, match=r"remove '\.\.'"):
        await copy("volume:///ml/../../etc")
    program = ["python", "-c", "raise SystemExit('the disk failed')"]
    with pytest.raises(ProgramFailed, match="the disk failed") as failed:
        await run_in_container(cluster, PodContainer("ops", "first", "operator"), program, bytes)
    assert failed.value.code == 1
    kubelet.forbidden = True
    with pytest.raises(ClusterFailure, match="ask the administrator for the right to create pods/exec there, or"):
        await copy(f"volume:///{SESSION}")
    kubelet.pods = []
    with pytest.raises(ConfigurationError, match=r"no pod of the operator runs in cluster 'lab'; `mldiag doctor` che"):
        await copy(f"volume:///{SESSION}")


async def test_a_user_who_may_not_list_pods_sees_none_of_the_operator(cluster: ApiClient, kubelet: Kubelet) -> None:
    assert [each.pod for each in await operator_containers(cluster)] == ["first", "second"]
    kubelet.hidden = True
    assert await operator_containers(cluster) == []
    with pytest.raises(ClusterError) as refused:  # a copy says who may not do what
        await copied(cluster, f"volume:///{SESSION}")
    assert refused.value.status == 403


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_a_name_that_leads_out_of_the_copy_is_refused(tmp_path: Path, name: str) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        files.addfile(tarfile.TarInfo(name))
    archive.seek(0)
    with pytest.raises(ConfigurationError, match="leads out of the directory"):
        extract(archive, tmp_path / "copy")
    assert not list(tmp_path.rglob("outside"))


def test_links_of_an_archive_are_left_out_and_a_part_of_one_is_an_error(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        files.addfile(link)
        file = tarfile.TarInfo("sub/file")
        file.size = 2000
        files.addfile(file, io.BytesIO(bytes(2000)))
    extract(io.BytesIO(archive.getvalue()), tmp_path / "whole")
    assert [path.name for path in (tmp_path / "whole").rglob("*") if not path.is_dir()] == ["file"]
    with pytest.raises(ConfigurationError, match="run the command again"):
        extract(io.BytesIO(archive.getvalue()[:1600]), tmp_path / "part")


async def test_links_pipes_and_devices_of_tenants_are_left_out(cluster: ApiClient, kubelet: Kubelet) -> None:
    folder = kubelet.volumes / "second" / SESSION
    other = kubelet.volumes / "second" / "other-tenant"
    other.mkdir()
    (other / "private.json").write_text("{}")
    (folder / "linked").symlink_to(other)
    (folder / "broken.json").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.json")
    (folder / "\x1b[31m\n.json").write_text("1")
    os.link(folder / "capture.json", folder / "same.json")
    names = await copied(cluster, f"volume:///{SESSION}")
    assert names == ["\x1b[31m\n.json", "a.xplane.pb", "capture.json", "same.json"]


async def test_a_directory_that_is_a_link_does_not_exist(cluster: ApiClient, kubelet: Kubelet) -> None:
    ml = kubelet.volumes / "second" / "ml"
    (ml / "linked").symlink_to("trainer")
    with pytest.raises(ConfigurationError, match="the operator's volume has no such directory"):
        await copied(cluster, "volume:///ml/linked/plugins/profile/try")


async def copied(cluster: ApiClient, location: str) -> list[str]:
    """Copy a directory; return the names of the files that have their content."""
    archive = io.BytesIO()
    await copy_from_volume(cluster, location, SUFFIXES, archive.write, cluster="cluster 'lab'")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        assert all(each.isreg() for each in files)
        return sorted(files.getnames())


def test_an_archive_that_expands_is_refused(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as files:
        zeros = tarfile.TarInfo("a.json")
        zeros.size = 2**20
        files.addfile(zeros, io.BytesIO(bytes(zeros.size)))
    archive.seek(0)
    with pytest.raises(ConfigurationError, match="the copy of the operator's volume"):
        extract(archive, tmp_path / "copy")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_only_plain_files_are_written(tmp_path: Path, kind: bytes) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as files:
        entry = tarfile.TarInfo("a.json")
        entry.type, entry.linkname = kind, "/etc/passwd"
        files.addfile(entry)
    archive.seek(0)
    extract(archive, tmp_path / "copy")
    assert not list((tmp_path / "copy").iterdir())
