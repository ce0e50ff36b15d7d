"""Bill of materials of an image (SPDX 2.3): our packages, the locked ones, and the base; pure."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from packaging.markers import Marker

# Markers of the lock are evaluated for the interpreter of the images.
ENVIRONMENT = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
}


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of a lock file."""

    name: str
    version: str


def locked(requirements: str) -> list[Locked]:
    """Return the packages of a lock file that an image on Linux installs."""
    lines = re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)(?: *; *([^\\\n]+))?", requirements, re.MULTILINE)
    return [
        Locked(name, version)
        for name, version, marker in lines
        if not marker or Marker(marker.strip()).evaluate(ENVIRONMENT)
    ]


def document(
    name: str, version: str, *, members: Sequence[str], packages: Sequence[Locked], base: str, created: str
) -> dict[str, Any]:
    """Return the document of one image.

    Args:
        name: Name of the image.
        version: Version of the image and of our packages in it.
        members: Names of our packages.
        packages: Packages of others, from the lock.
        base: Name of the base image, with its digest if that is known.
        created: Time of the document, such as `2026-01-31T12:00:00Z`.
    """
    image = _package(name, version, f"pkg:oci/{name}?tag={version}", license_name="Apache-2.0")
    contents = [_package(each, version, _pypi(each, version), license_name="Apache-2.0") for each in members]
    contents += [_package(each.name, each.version, _pypi(each.name, each.version)) for each in packages]
    contents.append(_package(base, base.partition("@")[2] or base.rpartition(":")[2], ""))
    unique = hashlib.sha256(repr((name, version, members, packages, base)).encode()).hexdigest()[:32]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"urn:mldiagnostics:{name}:{version}:{unique}",
        "creationInfo": {"created": created, "creators": ["Tool: mldiagnostics-release"]},
        "packages": [image, *contents],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"]),
            *(_relation(image["SPDXID"], "CONTAINS", each["SPDXID"]) for each in contents[:-1]),
            _relation(image["SPDXID"], "DESCENDANT_OF", contents[-1]["SPDXID"]),
        ],
    }


def _package(name: str, version: str, url: str, *, license_name: str = "NOASSERTION") -> dict[str, Any]:
    package: dict[str, Any] = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", f"{name}-{version}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "licenseDeclared": license_name,
        "filesAnalyzed": False,
    }
    if url:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
        package["externalRefs"] = [reference]
    return package


def _pypi(name: str, version: str) -> str:
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"


def _relation(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
