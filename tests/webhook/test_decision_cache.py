from __future__ import annotations

from mldiagnostics_api.injection import DecisionKey, decision_key
from mldiagnostics_webhook.cache import OwnerContext
from mldiagnostics_webhook.decision_cache import CachedReview, DecisionCache
from mldiagnostics_webhook.limits import DECISIONS
from support.cluster.reviews import job, jobset, pod_of

REVIEW = CachedReview("cGF0Y2g=", "injected", "Injected", "", 0)
CONTEXT = OwnerContext({"metadata": {"name": "ml"}}, (), ())


def key(settings: int = 1) -> DecisionKey:
    key = decision_key(pod_of(job(jobset()), settings=settings), "ml")
    assert key
    return key


def test_a_decision_holds_for_equal_pods_in_the_same_context() -> None:
    decisions = DecisionCache()
    decisions.put("workload", CONTEXT, key(), REVIEW)
    assert decisions.get("workload", CONTEXT, key()) is REVIEW
    assert decisions.get("namespace", CONTEXT, key()) is None
    assert decisions.get("workload", CONTEXT, key(2)) is None
    again = OwnerContext(CONTEXT.namespace, CONTEXT.owners, CONTEXT.hits)
    assert decisions.get("workload", again, key()) is None, "another context: the cache may have changed"


def test_the_number_is_bounded_and_the_oldest_is_dropped_first() -> None:
    decisions = DecisionCache()
    for number in range(DECISIONS + 10):
        decisions.put("workload", CONTEXT, key(number), REVIEW)
    assert decisions.get("workload", CONTEXT, key(0)) is None
    assert decisions.get("workload", CONTEXT, key(DECISIONS + 9)) is REVIEW
    assert len(decisions._reviews) == DECISIONS
