"""No two rendered objects share kind, namespace and name: tools such as Argo CD keep only one of them."""

import itertools
import json
from collections import Counter
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mldiagnostics_api.publication import PUBLICATION_NAME
from release.parts import NAMESPACE, OPERATOR, PARTS, WEBHOOK, Part
from release.render import Object, rendered
from support.cluster.charts import CERTIFICATE, EVERY_SWITCH

LISTS = ([], ["ml"], [NAMESPACE, "ml"])
# Choices that the schema does not enumerate: lists of namespaces, and values that a mode needs.
OTHERS: dict[str, dict[str, tuple[Any, ...]]] = {
    OPERATOR.name: {
        "watch.namespaces": (*LISTS, ["kube-public"]),
        "networkPolicy.profilerPorts.namespaces": LISTS,
        "controlPlane.publish": (None, False, True),
        "view.proxy": ({}, {"userHeader": "X-User", "secretName": "proxy"}),
    },
    WEBHOOK.name: {"certificates.provided.caBundle": ("", CERTIFICATE)},
}
ALWAYS: dict[str, Object] = {
    OPERATOR.name: {
        "controlPlane.certificates.provided.secretName": "mine",
        "volume.existingClaim": "claim",
        "view.url": "https://view.example.com",
    },
    WEBHOOK.name: {"certificates.provided.secretName": "mine", "port": 8443},
}
RELEASES = ("a", "1.2-rc", "mldiagnostics-connection-operator", "x" * 53)


def switches(schema: Object, prefix: str = "") -> dict[str, tuple[Any, ...]]:
    """Return the possible values of booleans and enumerations, by path."""
    if schema.get("type") == "boolean":
        return {prefix: (False, True)}
    if "enum" in schema:
        return {prefix: tuple(schema["enum"])}
    parts = ((f"{prefix}.{key}".lstrip("."), part) for key, part in schema.get("properties", {}).items())
    return {path: values for key, part in parts for path, values in switches(part, key).items()}


def values_of(part: Part) -> st.SearchStrategy[Object]:
    choices = switches(json.loads((part.chart / "values.schema.json").read_text())) | OTHERS[part.name]
    chosen = st.fixed_dictionaries({}, optional={path: st.sampled_from(values) for path, values in choices.items()})
    return chosen.map(lambda values: ALWAYS[part.name] | values)


def shared(objects: list[Object]) -> list[tuple[str, str, str]]:
    """Return the identities that more than one object has, hooks included."""
    metadata = ((item["kind"], item["metadata"]) for item in objects)
    identities = Counter((kind, each.get("namespace", ""), each["name"]) for kind, each in metadata)
    return [identity for identity, times in identities.items() if times > 1]


# Not shrunk: each example runs helm twice.
@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(operator=values_of(OPERATOR), webhook=values_of(WEBHOOK), release=st.sampled_from(RELEASES))
def test_property_no_two_objects_of_both_charts_share_an_identity(
    operator: Object, webhook: Object, release: str
) -> None:
    """In an umbrella chart both charts have the same release name and namespace."""
    pairs = ((OPERATOR, operator), (WEBHOOK, webhook))
    assert shared([item for part, values in pairs for item in rendered(part, values, release=release)]) == []


def test_every_switch_changed_renders_no_object_twice() -> None:
    modes = itertools.product(PARTS, ({}, {"certificates.mode": "self"}, {"certificates.mode": "cert-manager"}))
    for part, mode in modes:
        assert shared(rendered(part, EVERY_SWITCH[part.name] | (mode if part is WEBHOOK else {}))) == [], (part, mode)


def test_long_release_names_with_the_same_start_give_different_names() -> None:
    names = ("x" * 52 + "a", "x" * 52 + "b")
    objects = [item for part in PARTS for name in names for item in rendered(part, release=name)]
    of_the_cluster = [
        item
        for item in objects
        if item["kind"] == "CustomResourceDefinition" or item["metadata"]["name"] == PUBLICATION_NAME
    ]
    assert shared([item for item in objects if item not in of_the_cluster]) == []
