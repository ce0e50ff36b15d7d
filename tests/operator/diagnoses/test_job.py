from __future__ import annotations

import json
from typing import Any

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator.diagnoses.job import VOLUME, JobTemplate

VOLUMES = [{"name": "tmp", "emptyDir": {}}, {"name": VOLUME, "persistentVolumeClaim": {"claimName": "profiles"}}]


def template(*, volumes: list[dict[str, Any]] = VOLUMES, buckets: bool = False) -> JobTemplate:
    container = {"name": "diagnosis", "image": "cli:1", "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}
    spec = {"backoffLimit": 0, "template": {"spec": {"containers": [container], "volumes": volumes}}}
    return JobTemplate.parse(json.dumps({"labels": {"app": "d"}, "spec": spec, "readsBuckets": buckets}))


def test_a_job_sees_the_directory_of_its_session_alone() -> None:
    job = template().manifest("uid-1", Location.parse("volume:///ml/trainer"), "slow-1")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["volumeMounts"] == [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": VOLUME, "mountPath": "/traces/plugins/profile/slow-1", "subPath": "ml/trainer/plugins/profile/slow-1"},
    ]
    assert container["args"] == ["session", "/traces", "slow-1"]
    assert job["metadata"]["name"] == "mldiag-diagnosis-uid-1"
    assert job["spec"]["template"]["metadata"]["labels"] == {"app": "d"}


def test_a_job_for_a_bucket_has_no_volume_of_the_operator() -> None:
    job = template(buckets=True).manifest("uid-1", Location.parse("gs://bucket/ml"), "slow-1")
    pod = job["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp"]
    assert pod["containers"][0]["args"] == ["session", "gs://bucket/ml", "slow-1"]


def test_the_template_is_not_changed_by_a_job() -> None:
    one, location = template(), Location.parse("volume:///ml")
    first = one.manifest("a", location, "s")
    assert one.manifest("b", location, "s")["spec"] == first["spec"]
    assert one == template()


@pytest.mark.parametrize(
    ("location", "made", "words"),
    [
        ("volume:///ml", template(), ""),
        ("gs://bucket/ml", template(buckets=True), ""),
        ("gs://bucket/ml", template(), "set diagnosis.buckets"),
        ("volume:///ml", template(volumes=VOLUMES[:1]), "set volume.claim.enabled"),
        ("/tmp/profiles", template(), "the traces are in the pods"),
    ],
)
def test_an_obstacle_says_what_to_set(location: str, made: JobTemplate, words: str) -> None:
    obstacle = made.obstacle(Location.parse(location))
    assert words in obstacle
    assert bool(words) == bool(obstacle)


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"labels": {}, "spec": {}, "readsBuckets": true}'])
def test_another_document_is_rejected(document: str) -> None:
    with pytest.raises(ValueError, match="is not the template of a Job"):
        JobTemplate.parse(document)
