"""Hypothesis strategies for the names and values that Kubernetes allows."""

from __future__ import annotations

import datetime as dt
import string

from hypothesis import strategies as st

_ALNUM = string.ascii_lowercase + string.digits


@st.composite
def dns_labels(draw: st.DrawFn, max_size: int = 63) -> str:
    """Names of namespaces and of most objects (RFC 1123 label)."""
    size = draw(st.integers(1, max_size))
    if size == 1:
        return draw(st.sampled_from(_ALNUM))
    inner = draw(st.text(_ALNUM + "-", min_size=size - 2, max_size=size - 2))
    return draw(st.sampled_from(_ALNUM)) + inner + draw(st.sampled_from(_ALNUM))


def dns_subdomains() -> st.SearchStrategy[str]:
    """Names of pods, JobSets, … (RFC 1123 subdomain, up to 253 characters)."""
    return st.lists(dns_labels(), min_size=1, max_size=5).map(".".join).map(lambda name: name[:253].rstrip(".-"))


def kinds() -> st.SearchStrategy[str]:
    """Kinds as CamelCase words."""
    return st.text(string.ascii_letters, min_size=1, max_size=30).map(str.capitalize)


def uids() -> st.SearchStrategy[str]:
    """Uids as the API server writes them."""
    return st.uuids().map(str)


def run_ids() -> st.SearchStrategy[str]:
    """Run ids: 64 lower-case hex digits."""
    return st.text("0123456789abcdef", min_size=64, max_size=64)


def instants() -> st.SearchStrategy[dt.datetime]:
    """Return a strategy of times with a zone: any offset of whole minutes, independent of this system's zones."""
    offsets = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
    return st.datetimes(dt.datetime(1980, 1, 1), dt.datetime(2100, 1, 1), timezones=offsets)  # noqa: DTZ001
