"""Choice of the provider, and the message if none works."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster.current import Current
from cluster.progress import ClusterError
from cluster.provider import choose


@dataclass
class Machine:
    """Provider that can run or has an obstacle."""

    name: str
    reason: str | None = None
    automatic: bool = True
    folder: Path = Path("/nowhere")
    kubeconfig: Path = Path("/nowhere/kubeconfig")

    def obstacle(self) -> str | None:
        return self.reason

    def running(self) -> bool:
        return False

    def up(self) -> None:
        raise AssertionError

    def down(self) -> None:
        raise AssertionError

    def load_image(self, archive: Path) -> None:
        raise AssertionError(archive)

    def pull(self, image: str) -> bool:
        raise AssertionError(image)

    def status(self) -> list[str]:
        return []


KIND = Machine("kind", "no Docker engine answers; start it")
BARE = Machine("bare")
OWN = Machine("current", automatic=False)


def test_the_first_that_can_run_is_chosen() -> None:
    assert choose([KIND, BARE, OWN], "").name == "bare"


def test_cluster_chooses_the_provider() -> None:
    assert choose([KIND, BARE, OWN], "current").name == "current"


def test_a_chosen_provider_that_cannot_run_gives_the_reason() -> None:
    with pytest.raises(ClusterError, match="CLUSTER=kind cannot run here: no Docker engine answers; start it"):
        choose([KIND, BARE, OWN], "kind")


def test_an_unknown_provider_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ClusterError, match="use one of kind, bare, current"):
        choose([KIND, BARE, OWN], "minikube")


def test_an_existing_cluster_is_never_used_automatically() -> None:
    with pytest.raises(ClusterError) as caught:
        choose([KIND, Machine("bare", "needs root"), OWN], "")
    message = str(caught.value)
    assert "kind: no Docker engine answers; start it" in message
    assert "bare: needs root" in message
    assert "CLUSTER=current" in message


def test_the_current_kubeconfig_is_the_first_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    assert Current().kubeconfig == tmp_path / "one"
    assert Current().obstacle() == f"{tmp_path / 'one'} does not exist; set KUBECONFIG"
    (tmp_path / "one").touch()
    assert Current().obstacle() is None
    with pytest.raises(ClusterError, match="push the image to a registry"):
        Current().load_image(tmp_path / "image.tar")
