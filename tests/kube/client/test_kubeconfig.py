from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.client import kubeconfig


def write(path: Path, **entries: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({name.replace("_", "-"): value for name, value in entries.items()}))
    return path


def test_several_files_are_one_of_which_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/ca.pem").write_text("CA")
    first = write(
        tmp_path / "a" / "config",
        contexts=[{"name": "lab", "context": {"cluster": "far", "user": "me", "namespace": "ml"}}],
        users=[{"name": "me", "user": {"token": "first"}}],
    )
    second = write(
        tmp_path / "b" / "config",
        current_context="lab",
        clusters=[{"name": "far", "cluster": {"server": "https://far", "certificate-authority": "ca.pem"}}],
        users=[{"name": "me", "user": {"token": "second"}}],
    )
    context = kubeconfig.load([first, tmp_path / "missing", second]).context()
    assert (context.name, context.namespace, context.user.fields) == ("lab", "ml", {"token": "first"})
    assert context.cluster.pem("certificate-authority") == b"CA"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "has no current context; add a context"),
        ({"current_context": "lab", "contexts": [{"name": "a", "context": {}}]}, "has no context 'lab'; .*: a$"),
        ({"current_context": "a", "contexts": [{"name": "a", "context": {"cluster": "b"}}]}, "has no cluster 'b'"),
        ({"contexts": ["a"]}, "cannot be read: "),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, entries: dict[str, object], message: str) -> None:
    path = write(tmp_path / "config", **entries)
    with pytest.raises(ConfigurationError, match=f"kubeconfig '{path}': {message}"):
        kubeconfig.load([path]).context()


def test_a_file_that_is_missing_is_an_error_if_it_is_the_only_one() -> None:
    with pytest.raises(ConfigurationError, match="/none': no such file; set KUBECONFIG to an existing one"):
        kubeconfig.load([Path("/none")])
