"""URLs of control planes are checked, and a token is never sent without encryption."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane.endpoint import TOKEN_FILE, endpoint
from mldiagnostics.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "sends_token"),
    [
        ("https://control.ml.svc:8443", True),
        ("https://control.ml.svc/prefix/", True),
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("http://[::1]:80", True),
        ("http://control.ml.svc:8080", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_a_token_needs_encryption_or_this_host(url: str, *, sends_token: bool) -> None:
    known = endpoint(url, "base_url")
    assert (known.url, known.sends_token, known.token_file) == (url.rstrip("/"), sends_token, TOKEN_FILE)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "control:8443",
            "https://",
            "https://:1",
            "ftp://host",
            "https://host:99999",
            "https://host:x",
            "https://host:0",
        ),
        *(
            "https://user:password@host",
            "https://host?a=1",
            "https://host#a",
            "https://ho st",
            "https://host\n",
            "http://[",
        ),
    ],
)
def test_other_urls_are_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^is not the URL of a control plane and is ignored; use https"):
        endpoint(url, "base_url")


@given(st.text())
def test_any_text_is_a_url_or_rejected(text: str) -> None:
    try:
        known = endpoint(text, "base_url")
    except ConfigurationError:
        return
    assert text.startswith(known.url)


def test_a_url_of_the_program_may_have_a_certificate_of_the_system() -> None:
    assert endpoint("https://host", "base_url", ca_file="/ca.crt").trusts_system
    assert not endpoint("https://host", "MLDIAG_CONTROL_PLANE_URL", ca_file="/ca.crt").trusts_system
    assert endpoint("https://host", "MLDIAG_CONTROL_PLANE_URL").trusts_system
