"""The bill of materials names every package of an image."""

import re

import pytest
from cluster.paths import REPOSITORY
from release.parts import IMAGES, Image
from release.sbom import Locked, document, locked

LOCK = """\
aiohttp==3.14.5 \\
    --hash=sha256:00
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:11
uvloop==0.23.0 ; sys_platform != 'win32' \\
    --hash=sha256:22
"""


def test_packages_of_other_systems_are_left_out() -> None:
    assert locked(LOCK) == [Locked("aiohttp", "3.14.5"), Locked("uvloop", "0.23.0")]


@pytest.mark.parametrize("part", IMAGES, ids=lambda part: part.folder)
def test_every_locked_package_is_read(part: Image) -> None:
    text = (REPOSITORY / part.folder / "requirements.lock").read_text()
    names = set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))
    assert {package.name for package in locked(text)} == names - {"colorama"}


def test_a_document_relates_the_image_to_its_contents() -> None:
    bill = document(
        "operator",
        "1.2.3",
        members=["mldiagnostics", "mldiagnostics-api"],
        packages=[Locked("typing_extensions", "4.16.0")],
        base="registry.test/python:3.12@sha256:ab",
        created="2026-11-22T10:00:00Z",
    )
    by_id = {package["SPDXID"]: package for package in bill["packages"]}
    assert len(by_id) == 5, "identifiers are unique"
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in by_id)
    relations = {
        (each["relationshipType"], by_id[each["relatedSpdxElement"]]["name"]) for each in bill["relationships"]
    }
    assert relations == {
        ("DESCRIBES", "operator"),
        ("CONTAINS", "mldiagnostics"),
        ("CONTAINS", "mldiagnostics-api"),
        ("CONTAINS", "typing_extensions"),
        ("DESCENDANT_OF", "registry.test/python:3.12@sha256:ab"),
    }
    purls = {each["referenceLocator"] for package in bill["packages"] for each in package.get("externalRefs", [])}
    assert "pkg:pypi/typing-extensions@4.16.0" in purls
