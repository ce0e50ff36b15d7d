"""Compatible accounting beside ml-goodput-measurement 0.2.3 itself, on jobs made up at random."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest
from mldiagnostics.goodput import GoodputCalculator
from mldiagnostics.goodput_elastic import ElasticGoodputCalculator
from support import environments, goodput_peer
from support.goodput_entries import JOB
from support.goodput_questions import questions

DAY_S = 86_400.0


def ours(question: dict[str, Any]) -> dict[str, Any]:
    kind = ElasticGoodputCalculator if question["elastic"] else GoodputCalculator
    calculator = kind(JOB, "log", goodput_peer.Reader(question["entries"]), accounting="compatible")
    try:
        return goodput_peer.asked(calculator, question)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return {"error": type(error).__name__}


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return set(mine) == set(theirs) and all(close(mine[key], value) for key, value in theirs.items())
    return bool(mine == (theirs if isinstance(theirs, str) else pytest.approx(theirs, abs=1e-5)))


@pytest.mark.peers
def test_it_answers_as_the_peer_does() -> None:
    try:
        python = environments.interpreter("peer-goodput")
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    asked = questions(20_261_121, 300, t0=time.time() - 3 * DAY_S)  # the peer reads a week back from now
    command = [str(python), "-W", "ignore", goodput_peer.__file__]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=200, check=True)
    theirs = json.loads(done.stdout)
    different = [
        (question["op"], mine, answer)
        for question, answer in zip(asked, theirs, strict=True)
        if not close(mine := ours(question), answer)
    ]
    assert different == []
    assert sum("error" in answer for answer in theirs) < len(theirs) / 2, "jobs without an answer prove little"
