"""The ConfigMap of the control plane: written data are read unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.publication import MAX_CA_CHARACTERS, Publication

URLS = st.from_regex(r"https://[a-z][a-z0-9.-]{0,60}:[1-9][0-9]{0,4}", fullmatch=True)
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
TEXTS = st.one_of(st.text(max_size=40), URLS)


@given(url=URLS, ca=st.text(max_size=200), namespaces=st.frozensets(NAMES, max_size=4))
def test_property_what_is_written_is_read(url: str, ca: str, namespaces: frozenset[str]) -> None:
    publication = Publication(url=url, ca=ca, namespaces=namespaces)
    assert Publication.of(publication.data()) == publication
    assert all(publication.serves(name) for name in namespaces)
    assert publication.serves("-other-") is (not namespaces)


@given(st.dictionaries(st.sampled_from(["url", "ca.crt", "namespaces", "more"]), TEXTS))
def test_property_any_data_is_read_or_rejected_by_key(data: dict[str, str]) -> None:
    rejected = ""
    publication = None
    try:
        publication = Publication.of(data)
    except ValueError as fault:
        rejected = str(fault).partition(":")[0]
    assert not rejected or rejected in data
    assert (publication is None) is (not data.get("url") or bool(rejected))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"url": "control.ml.svc"}, "url: 'control.ml.svc' is not a URL"),
        ({"url": "https://a", "ca.crt": "x" * (MAX_CA_CHARACTERS + 1)}, "ca.crt: 4097 characters; at most 4096"),
        ({"url": "https://a", "namespaces": "ml,"}, "namespaces: '' is not the name"),
    ],
)
def test_invalid_data_is_named(data: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Publication.of(data)
