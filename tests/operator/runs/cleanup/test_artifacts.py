from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import StoreForbidden
from mldiagnostics.store import open_store
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.memory.journal_page import write_state
from mldiagnostics_operator.runs.cleanup.artifacts import ForeignFiles, RunArtifacts
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.storage import Storage
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "a" * 64
OTHER = "b" * 64


def run(location: str | None = None, *, namespace: str = "ml", run_id: str = RUN) -> Run:
    body = run_manifest("run", namespace, run_id)
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return Run.of(body | {"spec": body["spec"] | ({"storageLocation": location} if location else {})})


def put(root: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def record(namespace: str = "ml", run_id: str = RUN) -> dict[str, str]:
    return {"runId": run_id, "namespace": namespace}


@pytest.fixture
def artifacts(tmp_path: Path) -> Iterator[RunArtifacts]:
    storage = Storage(tmp_path)
    yield RunArtifacts(storage, Policy())
    storage.close()


async def test_all_files_of_the_run_go_and_no_others(artifacts: RunArtifacts, tmp_path: Path) -> None:
    capture = {
        "object": {"namespace": "ml"},
        "requested": {"triggerCapture": {"podName": "w-0"}},
        "targets": [{"runId": RUN}],
    }
    put(tmp_path, {f"{RUN}/reported/state.json": record(), f"{RUN}/reported/records/a0-r0-x-00001.jsonl": ""})
    put(tmp_path, {f"ml/own/{RUN}/plugins/profile/s/{name}": capture for name in ("capture.json", "w-0.xplane.pb")})
    put(tmp_path, {f"ml/{RUN}/reported/state.json": record(), f"ml/{RUN}/plugins/profile/s/of-a-workload": ""})
    others = {f"{OTHER}/run.json": record(run_id=OTHER), f"ml/own/{OTHER}/run.json": "", f"{RUN}-2/run.json": record()}
    put(tmp_path, others)
    done = await artifacts.delete(run("volume:///ml/own"))
    assert done == [
        f"2 files below volume:///ml/own/{RUN}",
        f"2 files below volume:///{RUN}",
        f"1 file below volume:///ml/{RUN}/reported",
    ]
    assert left(tmp_path) == sorted([*others, f"ml/{RUN}/plugins/profile/s/of-a-workload"])
    assert await artifacts.delete(run("volume:///ml/own")) == []


@pytest.mark.parametrize(
    "files",
    [
        {"run.json": record("other")},
        {"run.json": record("other"), "reported/state.json": record()},
        {"run.json": record(run_id=OTHER)},
        {"run.json": "not JSON"},
        {"run.json": []},
        {"records/a0-r0-x-00001.jsonl": ""},
        {"plugins/profile/s/capture.json": {"object": {"namespace": "other"}, "targets": [{"runId": RUN}]}},
    ],
    ids=str,
)
async def test_files_that_may_be_of_another_run_stay(
    artifacts: RunArtifacts, tmp_path: Path, files: dict[str, Any]
) -> None:
    put(tmp_path / RUN, files)
    with pytest.raises(ForeignFiles, match=f"volume:///{RUN}"):
        await artifacts.delete(run())
    assert left(tmp_path / RUN) == sorted(files)


async def test_the_state_of_a_large_run_names_it_by_its_head(artifacts: RunArtifacts, tmp_path: Path) -> None:
    process = b'"00000001":"' + b"x" * (17 << 20) + b'"'
    state = tmp_path / RUN / "reported/state.json"
    state.parent.mkdir(parents=True)
    state.write_bytes(write_state(RunKey("ml", RUN), "mark", {}, [process]))
    assert await artifacts.delete(run()) == [f"1 file below volume:///{RUN}"]
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_bytes(write_state(RunKey("other", RUN), "mark", {}, [process]))
    with pytest.raises(ForeignFiles):
        await artifacts.delete(run())


async def test_a_record_of_many_arrays_names_no_run(artifacts: RunArtifacts, tmp_path: Path) -> None:
    put(tmp_path / RUN, {"run.json": json.dumps(record() | {"x": [[]] * 70_000})})
    with pytest.raises(ForeignFiles):
        await artifacts.delete(run())


async def test_no_link_leads_a_deletion_elsewhere(artifacts: RunArtifacts, tmp_path: Path) -> None:
    put(tmp_path, {f"victim/{RUN}/run.json": record(), "victim/file": ""})
    (tmp_path / RUN).symlink_to(tmp_path / "victim" / RUN)
    with pytest.raises(StoreForbidden, match="link"):
        await artifacts.delete(run())
    (tmp_path / "ml").symlink_to(tmp_path / "victim")
    (tmp_path / RUN).unlink()
    with pytest.raises(StoreForbidden, match="link"):
        await artifacts.delete(run("volume:///ml"))
    assert left(tmp_path) == [f"victim/{RUN}/run.json", "victim/file"]


async def test_the_files_in_a_bucket_go_and_those_of_other_runs_stay(artifacts: RunArtifacts, bucket_url: str) -> None:
    store = open_store(bucket_url)
    for key in (f"{RUN}/run.json", f"{RUN}/reported/state.json", f"{OTHER}/run.json"):
        store.put(key, json.dumps(record()).encode())
    assert await artifacts.delete(run(bucket_url)) == [f"2 files below {bucket_url}/{RUN}"]
    assert [entry.key for entry in store.list()] == [f"{OTHER}/run.json"]


async def test_a_bucket_that_refuses_keeps_the_record_that_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_emulator() as emulator, faulty_proxy(emulator) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        emulator.make_bucket("shared")
        emulator.make_object("shared", f"ml/{RUN}/run.json", json.dumps(record()).encode())
        emulator.make_object("shared", f"ml/{RUN}/records/one.jsonl", b"{}")
        storage = Storage(tmp_path)
        artifacts = RunArtifacts(storage, Policy())
        assert await artifacts.delete(run("gs://shared/ml", namespace="other", run_id=OTHER)) == []
        known = len(proxy.requests)
        with pytest.raises(ForeignFiles):
            await artifacts.delete(run("gs://shared/ml", namespace="other"))
        listings = 2  # of captures, and of the files to delete
        proxy.faults.extend(["pass"] * (len(proxy.requests) - known + listings))
        proxy.otherwise = 403
        with pytest.raises(StoreForbidden):
            await artifacts.delete(run("gs://shared/ml"))
        assert proxy.requests[-1].startswith("DELETE")
        proxy.otherwise = "pass"
        store = open_store("gs://shared")
        assert f"ml/{RUN}/run.json" in [entry.key for entry in store.list()]
        [line] = await artifacts.delete(run("gs://shared/ml"))
        assert line.endswith(f"gs://shared/ml/{RUN}")
        assert list(store.list()) == []
        storage.close()
