"""Project and region from each source, each within its time limit."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.cloud import CloudEnvironment, metadata
from support.servers.local_http import served

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = {"project/project-id": "from-metadata", "instance/zone": "projects/7/zones/us-east5-b"}


class MetadataServer(BaseHTTPRequestHandler):
    requests: list[str] = []  # noqa: RUF012
    flavor = "Google"

    def do_GET(self) -> None:
        self.requests.append(self.path)
        answer = ANSWERS.get(self.path.removeprefix("/computeMetadata/v1/"))
        self.send_response(200 if answer and self.headers["Metadata-Flavor"] == "Google" else 404)
        self.send_header("Metadata-Flavor", self.flavor)
        self.end_headers()
        self.wfile.write((answer or "").encode())

    def log_message(self, *arguments: object) -> None:
        del arguments


def gcloud(folder: Path) -> dict[str, str]:
    (folder / "configurations").mkdir()
    (folder / "active_config").write_text("work\n")
    (folder / "configurations/config_work").write_text("[core]\nproject = from-gcloud\n[compute]\nregion = us-west1\n")
    return {"CLOUDSDK_CONFIG": str(folder), "GCE_METADATA_HOST": "127.0.0.1:1"}


def test_arguments_of_the_program_win(tmp_path: Path) -> None:
    env = {**gcloud(tmp_path), "GOOGLE_CLOUD_PROJECT": "from-env"}
    cloud = CloudEnvironment(project="said", region="us-central1", env=env)
    assert (cloud.project(), cloud.region()) == ("said", "us-central1")


def test_the_environment_has_precedence_over_gcloud(tmp_path: Path) -> None:
    env = gcloud(tmp_path)
    assert CloudEnvironment(env={**env, "GOOGLE_CLOUD_PROJECT": "from-env"}).project() == "from-env"
    assert (CloudEnvironment(env=env).project(), CloudEnvironment(env=env).region()) == ("from-gcloud", "us-west1")


def test_the_metadata_server_is_last_and_read_once(tmp_path: Path) -> None:
    class Handler(MetadataServer):
        requests: list[str] = []  # noqa: RUF012

    with served(Handler) as host:
        cloud = CloudEnvironment(env={"GCE_METADATA_HOST": host, "CLOUDSDK_CONFIG": str(tmp_path)})
        for _ in range(3):
            assert (cloud.project(30), cloud.region(30)) == ("from-metadata", "us-east5")
        assert len(Handler.requests) == 2


def test_a_response_of_another_server_is_ignored(tmp_path: Path) -> None:
    class Portal(MetadataServer):
        flavor = "hotel"

    with served(Portal) as host:
        assert CloudEnvironment(env={"GCE_METADATA_HOST": host, "CLOUDSDK_CONFIG": str(tmp_path)}).project(30) is None


@pytest.mark.parametrize("host", ["127.0.0.1:1", "name.invalid", "not a host", "127.0.0.1:port"])
def test_a_missing_metadata_server_gives_none(host: str) -> None:
    assert metadata("project/project-id", env={"GCE_METADATA_HOST": host}, timeout_s=20) is None


def test_a_server_that_never_answers_holds_up_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        assert metadata("project/project-id", env={"GCE_METADATA_HOST": host}, timeout_s=0.2) is None
