"""Files of runs on the operator's volume, from a server that runs programs as the kubelet does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.store import open_store
from mldiagnostics_api.runs.row import run_row_of
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_view.sources import run_files
from mldiagnostics_view.sources.run_files import UserFiles
from support.cluster.volume_pods import Kubelet, serving
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path


async def test_records_on_the_volume_are_copied_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubelet = Kubelet(tmp_path)
    volume = open_store(str(tmp_path / "first"))
    put_run(volume, "seen")
    volume.put("seen/plugins/profile/s/host.xplane.pb", b"a trace")
    metadata = {"name": "run", "namespace": "ml"}
    seen = run_row_of({"metadata": metadata, "spec": {"runId": "seen", "storageLocation": "volume:///"}})
    by_status = run_row_of(
        {"metadata": metadata, "spec": {"runId": "seen"}, "status": {"storageLocation": "volume:///"}}
    )
    without = run_row_of({"metadata": metadata, "spec": {"runId": "seen"}})
    async with serving(kubelet) as client:
        files = UserFiles(client, cluster="cluster 'lab'")
        folder = await files.directory(seen)
        assert folder.endswith("/seen")
        assert [entry.key for entry in open_store(folder).list("")] == ["run.json"]
        kubelet.forbidden = True
        assert await files.directory(by_status) == folder
        assert await files.directory(without) == folder, "a young copy is used again"
        monkeypatch.setattr(run_files, "COPY_AGE_S", 0)
        with pytest.raises(ClusterFailure, match="the right to get and list files") as failure:
            await files.directory(seen)
        assert failure.value.status == 403
        kubelet.forbidden = False
        monkeypatch.setattr(run_files, "MAX_COPY_BYTES", 100)
        with pytest.raises(ConfigurationError, match="set storageLocation to a bucket"):
            await files.directory(seen)
        await files.aclose()
    assert not list(open_store(folder).list(""))
