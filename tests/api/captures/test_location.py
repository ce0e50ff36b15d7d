from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.location import Location, Medium

schemes = st.sampled_from(
    [
        "gs://bucket/",
        "s3://bucket/",
        "az://bucket/",
        "abfss://a-b@account.dfs.core.windows.net/",
        "volume:///",
        "pod:///",
        "/",
    ]
)
# Everything that has been used to get out of a directory somewhere.
dots = ["..", ".", "", "...", "\u2024\u2024", "\u3002\u3002", "\uff0e\uff0e", "..\0", "%2e%2e", "\\.."]
nasty = st.sampled_from([*dots, "%2F", "a\\b", "a?b", "a#b", "~", "a", "tmp"])
segments = st.one_of(nasty, st.text("abcXYZ019._~=+@:,-", min_size=1, max_size=9), st.text(max_size=5))
paths = st.lists(segments, max_size=8).map("/".join)


def parse(text: str) -> Location | None:
    try:
        return Location.parse(text)
    except ValueError:
        return None


@given(schemes, paths)
def test_a_parsed_location_is_its_own_canonical_form(scheme: str, path: str) -> None:
    location = parse(scheme + path)
    if location is not None:
        assert Location.parse(str(location)) == location
        assert posixpath.normpath(location.path) == location.path.rstrip("/") or location.path == "/"


@given(schemes, paths, paths)
def test_no_path_escapes_an_allowed_prefix(scheme: str, allowed: str, path: str) -> None:
    prefix, location = parse(scheme + allowed), parse(f"{scheme}{allowed}/{path}")
    if prefix is None or location is None:
        return
    assert location.within(prefix)
    # As a file system would resolve it:
    assert f"{posixpath.normpath(location.path)}/".startswith(f"{prefix.path.rstrip('/')}/")


@given(schemes, paths, paths)
def test_within_compares_whole_segments(scheme: str, one: str, other: str) -> None:
    a, b = parse(scheme + one), parse(scheme + other)
    if a is not None and b is not None:
        assert a.within(b) == (a.path.rstrip("/") + "/").startswith(b.path.rstrip("/") + "/")


@given(schemes, paths)
def test_only_plain_segments_are_accepted(scheme: str, path: str) -> None:
    location = parse(scheme + path)
    if location is not None:
        assert not {"", ".", ".."}.intersection(location.segments)
        assert all(segment.isascii() and "%" not in segment and "\\" not in segment for segment in location.segments)


@pytest.mark.parametrize(
    ("text", "medium", "formatted"),
    [
        ("gs://b-1/a//b/", Medium.BUCKET, "gs://b-1/a/b"),
        ("gs://b-1", Medium.BUCKET, "gs://b-1"),
        ("s3://b-1/a//b/", Medium.BUCKET, "s3://b-1/a/b"),
        ("az://b-1//", Medium.BUCKET, "az://b-1"),
        (
            "abfss://b-1@account.dfs.core.windows.net//a/./b",
            Medium.BUCKET,
            "abfss://b-1@account.dfs.core.windows.net/a/b",
        ),
        ("volume:///", Medium.VOLUME, "volume:///"),
        ("volume:///a/./b", Medium.VOLUME, "volume:///a/b"),
        ("pod:///tmp/x", Medium.POD, "/tmp/x"),
        ("/tmp/x/", Medium.POD, "/tmp/x"),
    ],
)
def test_locations_are_formatted_for_people(text: str, medium: Medium, formatted: str) -> None:
    assert Location.parse(text).medium is medium
    assert str(Location.parse(text)) == formatted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tmp/x", "not an absolute path"),
        ("", "not an absolute path"),
        ("volume://host/x", "not an absolute path"),
        ("gs://", "has no bucket"),
        ("gs:///x", "invalid bucket name"),
        ("gs://Bucket/x", "invalid bucket name"),
        ("s3://", "has no bucket; use s3://<bucket>/<path>"),
        ("s3://b/x", "invalid bucket name; use s3://"),
        ("s3://my_bucket/x", "invalid bucket name; use s3://"),
        ("az:///x", "invalid bucket name; use az://<container>"),
        ("az://a.b.c/x", "invalid bucket name; use az://<container>"),
        ("abfss://container/x", "invalid bucket name; use abfss://<container>@<account>"),
        ("abfss://container@account.evil.example/x", "invalid bucket name; use abfss://"),
        ("abfss://container@account.dfs.core.windows.net.evil.example/x", "invalid bucket name"),
        ("wasb://container/x", "unknown scheme 'wasb'; use gs, s3, az, abfss, volume or pod"),
        ("file:///etc", "unknown scheme 'file'"),
        ("gs://bucket/a/../b", "contains '..'"),
        ("volume:///gs://shared/x", "'://' in its path"),
        ("volume:///{namespace}", "only policy.allowedStorage"),
        ("volume:///a{namespace}", "invalid characters"),
        ("/tmp/a b", "invalid characters in 'a b'"),
        ("/" + "a" * 1024, "1025 characters"),
        ("volume:///" + "a" * 256, "at most 255"),
    ],
)
def test_the_error_names_the_problem(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Location.parse(text)


def test_a_prefix_may_stand_for_every_bucket_only() -> None:
    every = Location.prefix("gs://")
    assert Location.parse("gs://any/where").within(every)
    assert Location.parse("s3://any/where").within(Location.prefix("s3://"))
    assert not Location.parse("s3://any/where").within(every)
    assert not Location.parse("s3://bucket/a").within(Location.prefix("gs://bucket/a"))
    assert not Location.parse("s3://bucket-2/a").within(Location.prefix("s3://bucket"))
    assert not Location.parse("/any/where").within(every)
    assert not Location.parse("gs://other/a").within(Location.prefix("gs://bucket/a"))


def test_a_prefix_may_name_the_namespace_of_the_capture() -> None:
    prefix = Location.prefix("gs://bucket/{namespace}/x")
    assert str(prefix.of_namespace("ml")) == "gs://bucket/ml/x"
    with pytest.raises(ValueError, match="invalid characters"):
        Location.prefix("volume:///of-{namespace}")


def test_a_child_obeys_the_same_rules() -> None:
    root = Location.parse("gs://bucket/root")
    assert str(root.child("a", "b")) == "gs://bucket/root/a/b"
    with pytest.raises(ValueError, match=r"'\.\.'"):
        root.child("..")
