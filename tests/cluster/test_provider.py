"""Which cluster is used, and what is said when none can be."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster.current import Current
from cluster.progress import ClusterError
from cluster.provider import choose


@dataclass
class Machine:
    """A provider that only knows whether it can run."""

    name: str
    reason: str | None = None
    chosen_by_itself: bool = True
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

    def status(self) -> list[str]:
        return []


KIND = Machine("kind", "no Docker engine answers; start it")
BARE = Machine("bare")
OWN = Machine("current", chosen_by_itself=False)


def test_the_first_that_can_run_is_chosen() -> None:
    assert choose([KIND, BARE, OWN], "").name == "bare"


def test_a_wish_decides() -> None:
    assert choose([KIND, BARE, OWN], "current").name == "current"


def test_a_wish_that_cannot_be_met_says_why() -> None:
    with pytest.raises(ClusterError, match="CLUSTER=kind cannot run here: no Docker engine answers; start it"):
        choose([KIND, BARE, OWN], "kind")


def test_an_unknown_wish_names_the_choices() -> None:
    with pytest.raises(ClusterError, match="use one of kind, bare, current"):
        choose([KIND, BARE, OWN], "minikube")


def test_somebody_s_cluster_is_never_chosen_by_itself_and_each_reason_is_given() -> None:
    with pytest.raises(ClusterError) as caught:
        choose([KIND, Machine("bare", "it needs root"), OWN], "")
    message = str(caught.value)
    assert "kind: no Docker engine answers; start it" in message
    assert "bare: it needs root" in message
    assert "CLUSTER=current" in message


def test_the_kubeconfig_in_use_is_the_first_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    assert Current().kubeconfig == tmp_path / "one"
    assert Current().obstacle() == f"there is no {tmp_path / 'one'}; set KUBECONFIG"
    (tmp_path / "one").touch()
    assert Current().obstacle() is None
    with pytest.raises(ClusterError, match="push the image to a registry"):
        Current().load_image(tmp_path / "image.tar")
