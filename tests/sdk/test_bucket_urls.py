"""URLs of buckets: their parts, and rejected ones."""

from __future__ import annotations

import pytest
from mldiagnostics.bucket_urls import SCHEMES, BucketUrl
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import BUCKET_SCHEMES, is_bucket


def test_all_schemes_of_buckets_have_parts() -> None:
    assert tuple(SCHEMES) == BUCKET_SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_the_example_of_a_scheme_is_a_bucket(scheme: object) -> None:
    example = getattr(scheme, "example", "")
    url = BucketUrl.parse(f"{example}/")
    assert (str(url), url.prefix, url.scheme) == (example, "prefix", scheme)
    assert is_bucket(example)


def test_an_account_is_in_the_url_or_in_the_environment() -> None:
    named = BucketUrl.parse("abfss://runs@models.dfs.core.windows.net")
    assert (named.container, named.account_host, str(named)) == (
        *("runs", "models.dfs.core.windows.net", "abfss://runs@models.dfs.core.windows.net"),
    )
    assert (BucketUrl.parse("az://runs/a/b").container, BucketUrl.parse("az://runs/a/b").account_host) == ("runs", "")


@pytest.mark.parametrize(
    "url",
    [
        *("/runs", "s3:/bucket", "S3://bucket", "s3://", "s3:///x", "s3://a", "s3://a b", "az://Upper", "az://a--b"),
        *("abfss://runs/x", "abfss://runs@account/x", "abfss://runs@UPPER.dfs.core.windows.net", "gs://UPPER"),
    ],
)
def test_other_urls_are_rejected_with_an_example(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write (gs|s3|az|abfss)://"):
        BucketUrl.parse(url)
