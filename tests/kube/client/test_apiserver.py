"""Paths of the API server are built from valid parts only."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.client.apiserver import NotFound, path_to

PART = st.text("abz09-._~:/%?#&=\\ \n\0ä", max_size=12) | st.sampled_from([".", "..", "%2f", "a/../b", "x?watch=true"])
SAFE = re.compile(r"/apis?(/[A-Za-z0-9._:~-]+)+")


@given(group=PART, version=PART, plural=PART, namespace=st.none() | PART, name=st.none() | PART, sub=st.none() | PART)
def test_a_path_has_the_given_parts_as_its_segments_or_is_refused(
    *, group: str, version: str, plural: str, namespace: str | None, name: str | None, sub: str | None
) -> None:
    try:
        path = path_to(group, version, plural, namespace=namespace, name=name, sub=sub)
    except NotFound:
        return
    assert SAFE.fullmatch(path)
    segments = path.split("/")
    assert not {"", ".", ".."}.intersection(segments[1:])
    given_parts = ["apis", group, version] if group else ["api", version]
    given_parts += ["namespaces", namespace] if namespace is not None else []
    assert segments[1:] == given_parts + [part for part in (plural, name, sub) if part is not None]


@pytest.mark.parametrize(
    ("group", "version", "plural", "name"),
    [
        ("", "v1", "pods", "trainer-0"),
        ("jobset.x-k8s.io", "v1alpha2", "jobsets", "a"),
        ("rbac.authorization.k8s.io", "v1", "clusterroles", "system:node-proxier"),
        ("batch", "v2beta1", "jobs", "a" * 253),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "jobsets.jobset.x-k8s.io"),
    ],
)
def test_names_that_kubernetes_accepts_are_accepted(group: str, version: str, plural: str, name: str) -> None:
    assert path_to(group, version, plural, name=name).endswith(f"/{plural}/{name}")


def test_the_error_names_the_part() -> None:
    with pytest.raises(NotFound, match=r"^name: '\.\./x' is not valid in Kubernetes, so there is no such object$"):
        path_to("", "v1", "pods", namespace="ml", name="../x")
