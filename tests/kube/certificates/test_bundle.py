"""The CA bundles of a configuration: parsing, and the patch that sets them."""

import base64
import copy
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import Lifetimes, new_authority
from mldiagnostics_kube.certificates.bundle import WebhookBundle

TRUST = WebhookBundle("configuration")
AUTHORITIES = [new_authority("webhook", datetime(2026, 4, 24, tzinfo=UTC), Lifetimes()).certificate for _ in range(4)]
sets = st.lists(st.sampled_from(AUTHORITIES), unique=True)
bundles = st.one_of(
    st.none(),
    sets.map(lambda chosen: base64.b64encode(pem.of_certificates(chosen)).decode()),
    st.binary(max_size=30).map(lambda raw: base64.b64encode(raw).decode()),
)


def _configuration(bundles: list[str | None]) -> dict[str, Any]:
    entries = [
        {
            "name": f"{number}.example",
            "clientConfig": {"service": {"name": "webhook"}} | ({"caBundle": bundle} if bundle is not None else {}),
        }
        for number, bundle in enumerate(bundles)
    ]
    return {"metadata": {"name": "configuration", "resourceVersion": "7"}, "webhooks": entries}


configurations = st.lists(bundles, min_size=1, max_size=3).map(_configuration)


@given(configurations, sets.filter(bool))
def test_property_every_entry_gets_the_published_bundle_and_a_second_publish_changes_nothing(
    configuration: dict[str, Any], trusted: list[Any]
) -> None:
    change = TRUST.publish(configuration, trusted)
    after = copy.deepcopy(configuration)
    if change is not None:
        assert change["metadata"] == configuration["metadata"]
        assert {key for entry in change["webhooks"] for key in entry} == {"name", "clientConfig"}
        for entry, changed in zip(after["webhooks"], change["webhooks"], strict=True):
            assert entry["name"] == changed["name"]
            assert list(changed["clientConfig"]) == ["caBundle"]
            entry["clientConfig"] |= changed["clientConfig"]
    assert TRUST.published(after) == tuple(trusted)
    assert all(TRUST.trusts(after, authority) is (authority in trusted) for authority in AUTHORITIES)
    assert TRUST.publish(after, trusted) is None


@given(configurations)
def test_property_trust_needs_every_entry_but_published_collects_all_entries(
    configuration: dict[str, Any],
) -> None:
    alone = [{**configuration, "webhooks": [entry]} for entry in configuration["webhooks"]]
    for authority in AUTHORITIES:
        assert TRUST.trusts(configuration, authority) is all(authority in TRUST.published(each) for each in alone)
        assert (authority in TRUST.published(configuration)) is any(
            authority in TRUST.published(each) for each in alone
        )


def test_a_configuration_without_entries_needs_no_patch() -> None:
    assert TRUST.publish({"metadata": {}}, AUTHORITIES) is None
    assert TRUST.published({"metadata": {}}) == ()
