from __future__ import annotations

from mldiagnostics_api.injection import DecisionKey, likeness_of
from mldiagnostics_webhook.cache import OwnerContext
from mldiagnostics_webhook.decision_cache import CachedReview, DecisionCache
from support.reviews import job, jobset, pod_of

VERDICT = CachedReview("cGF0Y2g=", "injected", "Injected", "", 0)
AROUND = OwnerContext({"metadata": {"name": "ml"}}, (), ())


def like(settings: int = 1) -> DecisionKey:
    found = likeness_of(pod_of(job(jobset()), settings=settings), "ml")
    assert found
    return found


def test_a_verdict_holds_for_pods_that_are_alike_where_they_are() -> None:
    remembered = DecisionCache()
    remembered.put("workload", AROUND, like(), VERDICT)
    assert remembered.get("workload", AROUND, like()) is VERDICT
    assert remembered.get("namespace", AROUND, like()) is None
    assert remembered.get("workload", AROUND, like(2)) is None
    again = OwnerContext(AROUND.namespace, AROUND.owners, AROUND.sights)
    assert remembered.get("workload", again, like()) is None, "the cache says that something may have changed"


def test_the_oldest_is_forgotten_first_and_there_are_never_many() -> None:
    remembered = DecisionCache()
    for number in range(600):
        remembered.put("workload", AROUND, like(number), VERDICT)
    assert remembered.get("workload", AROUND, like(0)) is None
    assert remembered.get("workload", AROUND, like(599)) is VERDICT
    assert len(remembered._verdicts) == 512
