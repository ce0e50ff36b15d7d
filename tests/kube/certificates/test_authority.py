"""Strict verifiers accept issued certificates for their names only, and none outlives its authority."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.certificates.authority import (
    BACKDATED,
    Lifetimes,
    is_authority,
    issue,
    issued_by,
    names_of,
    new_authority,
    valid,
)

NOW = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)
times = st.timedeltas(timedelta(minutes=1), timedelta(days=3650))
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True)
names = st.lists(st.lists(labels, min_size=2, max_size=4).map(".".join), min_size=1, max_size=4, unique=True)


@given(name=st.text("abc-", max_size=253), names=names, ca=times, leaf=times, waited=times)
def test_property_an_issued_certificate_is_trusted_until_it_expires(
    name: str, names: list[str], ca: timedelta, leaf: timedelta, waited: timedelta
) -> None:
    lifetimes = Lifetimes(authority=ca, leaf=leaf)
    authority = new_authority(name, NOW, lifetimes)
    issued_at = NOW + waited % ca
    pair = issue(authority, names, issued_at, lifetimes)
    assert pair.matches
    assert names_of(pair.certificate) == set(names)
    assert pair.ends <= authority.ends
    assert is_authority(authority.certificate)
    assert not is_authority(pair.certificate)
    for moment in (issued_at - BACKDATED, issued_at, pair.ends - timedelta(seconds=1)):
        if valid(authority.certificate, moment) and valid(pair.certificate, moment):
            policy = PolicyBuilder().store(Store([authority.certificate])).time(moment)
            for each in names:
                policy.build_server_verifier(x509.DNSName(each)).verify(pair.certificate, [])
            with pytest.raises(VerificationError):
                policy.build_server_verifier(x509.DNSName("other.example")).verify(pair.certificate, [])


def test_two_authorities_of_one_name_have_different_subjects() -> None:
    one, other = (new_authority("webhook", NOW, Lifetimes()) for _ in range(2))
    assert one.certificate.subject != other.certificate.subject
    leaf = issue(one, ["a.example"], NOW, Lifetimes())
    assert issued_by(leaf.certificate, one.certificate)
    assert not issued_by(leaf.certificate, other.certificate)
