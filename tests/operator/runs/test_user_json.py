from __future__ import annotations

import pytest
from mldiagnostics_operator.runs.user_json import parse_user_json


def test_a_capture_of_thousands_of_targets_is_parsed() -> None:
    target = b'{"runId":"r","pod":{"name":"w"},"files":[{"path":"p"}]}'
    document = parse_user_json(b'{"targets":[%b]}' % b",".join([target] * 10_000))
    assert isinstance(document, dict)
    assert len(document["targets"]) == 10_000


@pytest.mark.parametrize("item", [b"[]", b"{}"])
def test_a_document_that_takes_many_times_its_size_is_not_parsed(item: bytes) -> None:
    with pytest.raises(ValueError, match="arrays and objects"):
        parse_user_json(b"[%b]" % b",".join([item] * 70_000))


def test_other_content_is_not_json() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_user_json(b"not JSON")
