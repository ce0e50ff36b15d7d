"""Hints of how to install: they name what exists, since no package index has this product yet."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from mldiagnostics.bucket_urls import SCHEMES
from mldiagnostics.install import install_hint

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no parser of TOML")
ROOT = Path(__file__).parents[2]
MEMBERS = {"sdk": ROOT / "sdk/src", "shim": ROOT / "shim/src"}


def project(member: str) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
    return table


def extras_that_code_names() -> set[str]:
    text = "".join(path.read_text() for path in MEMBERS["sdk"].rglob("*.py"))
    return set(re.findall(r"\bextra=\"([a-z-]+)\"", text)) | {scheme.extra for scheme in SCHEMES.values()}


def test_every_extra_that_code_names_is_one() -> None:
    assert {"gcs", "s3", "otlp"} <= extras_that_code_names()
    assert extras_that_code_names() <= set(project("sdk")["optional-dependencies"])  # type: ignore[call-overload]


@pytest.mark.parametrize("member", MEMBERS)
def test_the_hint_names_a_folder_of_the_checkout_and_the_wheel_that_it_makes(member: str) -> None:
    in_checkout, with_wheel = install_hint(member, extra="x", options="--no-deps").split(", or ")
    command = shlex.split(in_checkout.partition(" in a checkout")[0])
    assert command == ["pip", "install", "--no-deps", f"./{member}[x]"]
    assert (ROOT / member / "pyproject.toml").is_file()
    wheel = shlex.split(with_wheel.partition(" with its wheel")[0])[-1]
    assert wheel == f"PATH/{str(project(member)['name']).replace('-', '_')}-VERSION-py3-none-any.whl[x]"


def test_no_hint_names_a_package_that_no_index_has() -> None:
    sources = [path for folder in MEMBERS.values() for path in folder.rglob("*.py")]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    bad = re.compile(r"pip install (?!'?PATH/)[^\n;]*?['\" ]mldiagnostics(?:-[a-z]+)?(?:\[|['\" \n]|$)")
    assert bad.search("pip install 'mldiagnostics[gcs]'")
    assert [path.name for path in (*sources, *pages) if bad.search(path.read_text())] == []
