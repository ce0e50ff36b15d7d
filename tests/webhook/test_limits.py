from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mldiagnostics_api.injection import MAX_POD_BYTES
from mldiagnostics_webhook import limits

READ = """
import sys
from mldiagnostics_webhook.limits import MAX_BODY_BYTES, MAX_VALUES
from mldiagnostics_webhook.review import Review, read
from support.programs.peak_memory import peak_bytes

part, last = sys.argv[1:]
start = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",'
start += '"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"ml","object":{"junk":['
junk = part * ((MAX_VALUES - 20) // sum(map(part.count, "{[,"))) + "0],"
body = f'{start}{junk}"text":"'.encode()
body += b"a" * (MAX_BODY_BYTES - len(body) - 20) + last.encode() + b'"}}}'
del junk
read(body[:1000])  # what the first call needs
before_bytes = peak_bytes()
assert isinstance(read(body), Review), read(body)
print(peak_bytes() - before_bytes)
"""


@pytest.mark.parametrize(
    ("part", "last"),
    [
        ('{"":0},', ""),
        ('{"":' * 200 + "0" + "}" * 200 + ",", "\U0001f600"),
        ("[" * 900 + "]" * 900 + ",", "\U0001f600"),
        ('"\u00e9\u00e9",', "\U0001f600"),
    ],
    ids=["objects", "nested objects", "nested lists", "strings"],
)
def test_no_review_costs_more_than_its_share_of_memory(part: str, last: str) -> None:
    command = (sys.executable, "-c", READ, part, last)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environ)
    assert int(process.stdout) <= limits.REVIEW_BYTES


def test_the_limits_fit_into_the_memory() -> None:
    assert limits.PEAK_BYTES <= limits.MEMORY_LIMIT_BYTES * 0.8
    assert MAX_POD_BYTES < limits.MAX_BODY_BYTES, "users of larger pods get a warning"
    assert limits.SMALL_BODY_BYTES < limits.MAX_BODY_BYTES < limits.LARGE_BODIES_BYTES
    assert limits.READ_S <= 1
