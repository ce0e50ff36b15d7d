from __future__ import annotations

import doctest

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.workloads.kinds import selector_text
from mldiagnostics_cli.captures import cluster_target
from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing, parse_selector, parse_targets


def test_the_examples_hold() -> None:
    assert doctest.testmod(cluster_target).failed == 0


@pytest.mark.parametrize(
    ("texts", "selector", "target"),
    [
        (["trainer"], None, ClusterTarget(run="trainer")),
        (["jobset/trainer"], None, ClusterTarget(kind="JobSet", name="trainer")),
        (["jobsets.jobset.x-k8s.io/trainer"], None, ClusterTarget(kind="JobSet", name="trainer")),
        (["rayjob/tune"], None, ClusterTarget(kind="RayJob", name="tune")),
        (["lws/serve"], None, ClusterTarget(kind="LeaderWorkerSet", name="serve")),
        (["job/train"], None, ClusterTarget(kind="Job", name="train")),
        (["pod/a", "pods/b"], None, ClusterTarget(pods=("a", "b"))),
        ([], "app=x", ClusterTarget(selector="app=x")),
        (["host-0:9999", "10.0.0.7", "node.example.com", "fd00::7", "[fd00::7]:9"], None, None),
        ([], None, None),
    ],
)
def test_targets_are_written_as_kubectl_does(
    texts: list[str], selector: str | None, target: ClusterTarget | None
) -> None:
    assert parse_targets(texts, selector) == target


@pytest.mark.parametrize(
    ("texts", "selector", "message"),
    [
        (["trainer", "other"], None, "only one run or workload can be captured at a time"),
        (["trainer", "host:1"], None, "addresses and targets of a cluster cannot be mixed"),
        (["trainer"], "app=x", "both are given"),
        (["cow/trainer"], None, "cow/trainer: not a target; pass a run, HOST:PORT, or KIND/NAME with one of .*jobset"),
        (["jobset/"], None, "not a target"),
    ],
)
def test_what_cannot_be_meant_is_an_error(texts: list[str], selector: str | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_targets(texts, selector)


def test_a_selector_means_the_same_as_kubectls() -> None:
    text = "app=a,tier!=b,zone in (x,y),kind notin (z),gpu,!old"
    fields = parse_selector(text)
    assert fields["matchLabels"] == {"app": "a"}
    assert [each["operator"] for each in fields["matchExpressions"]] == [
        "NotIn",
        "In",
        "NotIn",
        "Exists",
        "DoesNotExist",
    ]
    assert selector_text(fields)
    with pytest.raises(ConfigurationError, match=r"'a==b==c' is not a requirement"):
        parse_selector("a==b==c")


def test_pods_by_name_cannot_be_narrowed() -> None:
    with pytest.raises(ConfigurationError, match="--ranks: not possible with pods by name"):
        ClusterTarget(pods=("a",)).fields(TargetNarrowing(ranks="0"))
