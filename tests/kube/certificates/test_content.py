"""The content of the Secret survives a round trip; anything else is rejected with a reason."""

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.certificates.authority import Lifetimes, issue, new_authority
from mldiagnostics_kube.certificates.content import AUTHORITY, AUTHORITY_KEY, LEAF, LEAF_KEY, PREVIOUS, SecretContent

NOW = datetime(2026, 4, 24, tzinfo=UTC)
LIFETIMES = Lifetimes()
AUTHORITIES = [new_authority("webhook", NOW, LIFETIMES) for _ in range(3)]
LEAVES = [issue(authority, ["a.example"], NOW, LIFETIMES) for authority in AUTHORITIES]
WHOLE = SecretContent(AUTHORITIES[0], (AUTHORITIES[1].certificate,), LEAVES[1])
KEYS = (AUTHORITY, AUTHORITY_KEY, PREVIOUS, LEAF, LEAF_KEY)


@pytest.mark.parametrize("previous", [(), (AUTHORITIES[1].certificate, AUTHORITIES[2].certificate)])
@pytest.mark.parametrize("leaf", [None, LEAVES[0]])
def test_content_survives_a_round_trip(previous: tuple[object, ...], leaf: object) -> None:
    content = SecretContent(AUTHORITIES[0], previous, leaf)  # type: ignore[arg-type]
    data = content.data()
    assert set(data) == set(KEYS)
    again = SecretContent.of(data)
    assert again.trusted == content.trusted
    assert (again.leaf and again.leaf.certificate) == (content.leaf and content.leaf.certificate)
    assert again.data() == data


def test_a_leaf_of_an_unknown_authority_is_dropped() -> None:
    data = SecretContent(AUTHORITIES[0], (), LEAVES[2]).data()
    assert SecretContent.of(data).leaf is None


def _text(key: str) -> bytes:
    return base64.b64decode(WHOLE.data()[key])


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (AUTHORITY, b"", "ca.crt: expected one certificate, it has 0"),
        (AUTHORITY, _text(AUTHORITY) + _text(PREVIOUS), "ca.crt: expected one certificate, it has 2"),
        (AUTHORITY, _text(PREVIOUS), "ca.key: not the key of ca.crt"),
        (AUTHORITY, b"garbage", "ca.crt: "),
        (AUTHORITY_KEY, b"", "ca.key: "),
        (PREVIOUS, _text(PREVIOUS)[:-60], "previous-ca.crt: "),
    ],
)
def test_the_error_names_the_damaged_key_of_the_secret(key: str, text: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SecretContent.of(WHOLE.data() | {key: base64.b64encode(text).decode()})


def test_a_server_certificate_is_rejected_as_authority() -> None:
    leaf = SecretContent(LEAVES[0]).data()
    with pytest.raises(ValueError, match=r"ca\.crt: not a certificate authority"):
        SecretContent.of(leaf)


mutations = st.one_of(
    st.binary(max_size=200).map(lambda raw: base64.b64encode(raw).decode()),
    st.text(max_size=50),
    st.tuples(st.sampled_from(KEYS), st.integers(0, 900), st.binary(min_size=1, max_size=3)).map(
        lambda cut: base64.b64encode(_text(cut[0])[: cut[1]] + cut[2] + _text(cut[0])[cut[1] + 1 :]).decode()
    ),
)


@given(st.dictionaries(st.sampled_from(KEYS), mutations, min_size=1))
def test_property_any_data_is_parsed_or_rejected(changes: dict[str, str]) -> None:
    try:
        content = SecretContent.of(WHOLE.data() | changes)
    except ValueError:
        return
    assert content.authority.matches
    assert content.leaf is None or content.leaf.matches
