"""Answers beside ml-goodput-measurement 0.2.3: equal where it is right, and the documented differences elsewhere."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from mldiagnostics.goodput import GoodputCalculator
from mldiagnostics.goodput_elastic import ElasticGoodputCalculator
from support.goodput import peer as goodput_peer
from support.goodput.cases import Case, Question, cases
from support.goodput.differences import DIFFERENCES, Difference
from support.goodput.entries import JOB
from support.goodput.questions import plain_questions
from support.programs import environments

DECISION = Path(__file__).parents[4] / "docs/decisions/0018-answer-the-peers-queries-exactly.md"
DAY_S = 86_400.0
NAMES = {"badput": "badput_percent", "max_step": "max_productive_step"}
"""Keys of `goodput_peer` and the keys of the worked traces."""


def started() -> float:
    """Return a start of jobs that the peer can read: it reads the last week only."""
    return round(time.time()) - 3 * DAY_S


def ours(question: dict[str, Any]) -> dict[str, Any]:
    kind = ElasticGoodputCalculator if question["elastic"] else GoodputCalculator
    try:
        return goodput_peer.query(kind(JOB, "log", goodput_peer.Reader(question["entries"])), question)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return {"error": type(error).__name__}


def peer(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        python = environments.interpreter("peer-goodput")
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    command = [str(python), "-W", "ignore", goodput_peer.__file__]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, timeout=200, check=True)
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def close(answer: Any, expected: Any, *, within: float = 1e-4) -> bool:
    """Compare the parts that `expected` names; a bucket that is missing is empty."""
    if expected == {}:
        return answer == {}
    if isinstance(expected, dict):
        return isinstance(answer, dict) and all(
            close(answer.get(key, {} if isinstance(value, dict) else 0.0), value, within=within)
            for key, value in expected.items()
        )
    return bool(answer == (expected if isinstance(expected, str) else pytest.approx(expected, abs=within)))


WORKED = [(case, question) for case in cases() for question in case.questions]


@pytest.mark.parametrize(("case", "question"), WORKED, ids=lambda value: getattr(value, "name", None) or value.op)
def test_a_worked_trace_has_the_peers_answer_where_the_peer_is_right(case: Case, question: Question) -> None:
    kind = ElasticGoodputCalculator if case.elastic else GoodputCalculator
    calculator = kind(JOB, "log", case.reader(question.now), clock=lambda: question.now)
    op = question.op.removeprefix("get_job_goodput").removeprefix("_with").removeprefix("_") or "goodput"
    answer = goodput_peer.query(
        calculator, {"op": op, "window": question.window, "exclusions": list(question.exclusions)}
    )
    expected = {key: value for key, value in question.peer.items() if key != "seconds"}
    same = close({NAMES.get(key, key): value for key, value in answer.items()}, expected)
    assert same == (case.verdict in {"agree", "convention"}), (answer, expected)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_a_documented_difference_has_our_answer(difference: Difference) -> None:
    question = difference.question(started())
    answer = ours(question)
    assert close(answer, difference.ours), answer
    assert not close(answer, difference.peer), "the answers do not differ: drop the row"
    assert f"| {difference.name} |" in DECISION.read_text(), "decision 0018 has no row for this difference"


def test_plain_jobs_have_no_time_that_is_counted_twice() -> None:
    for question in plain_questions(20_261_121, 50, t0=started()):
        answer = ours(question | {"op": "goodput"})
        assert "error" not in answer
        badput = {key: share for key, share in answer["badput"].items() if key != "DATA_LOADING_ASYNC"}
        whole = sum(sum(share.values()) if isinstance(share, dict) else share for share in badput.values())
        assert answer["goodput"] + whole == pytest.approx(100.0)


@pytest.mark.peers
def test_the_peer_answers_differently_as_documented() -> None:
    t0 = started()
    answers = peer([difference.question(t0) for difference in DIFFERENCES])
    wrong = [
        (difference.name, answer)
        for difference, answer in zip(DIFFERENCES, answers, strict=True)
        if not close(answer, difference.peer)
    ]
    assert wrong == []


@pytest.mark.peers
def test_plain_jobs_have_the_peers_answer() -> None:
    questions = plain_questions(20_261_121, 300, t0=started())
    different = [
        (question["op"], answer, theirs)
        for question, theirs in zip(questions, peer(questions), strict=True)
        if not close(answer := ours(question), theirs)
    ]
    assert different == []
