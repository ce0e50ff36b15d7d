"""Clients that trust the published bundle accept every served leaf, for all replicas, clocks and faults."""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from mldiagnostics_kube.certificates.authority import issued_by
from mldiagnostics_kube.certificates.bundle import WebhookBundle
from mldiagnostics_kube.certificates.rotation import RotationRules
from mldiagnostics_kube.certificates.selfmanaged import CertificateObjects, RotationTiming, SelfManaged
from mldiagnostics_kube.certificates.serving import ServingCertificate
from mldiagnostics_kube.client.apiserver import Conflict
from support.cluster.simulated_cluster import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Coroutine

NAME = "webhook.ml.svc"
RULES = RotationRules("webhook", frozenset({NAME}))
TRUST = WebhookBundle("configuration")
OBJECTS = CertificateObjects("ml", "certificates", TRUST)
TIMING = RotationTiming()
SKEW = timedelta(minutes=10)
CONFIGURATION = {
    "metadata": {"name": "configuration"},
    "webhooks": [{"name": f"{each}.example", "clientConfig": {"service": {"name": "webhook"}}} for each in "ab"],
}
replicas = st.integers(0, 2)


class Replica:
    """One replica of the webhook, driven call by call; its clock may be wrong."""

    def __init__(self, world: World, skew: timedelta, rules: RotationRules = RULES) -> None:
        self.serving = ServingCertificate(lambda: world.now + skew)
        self.manager = SelfManaged(
            world.cluster,  # type: ignore[arg-type]
            OBJECTS,
            rules,
            self.serving,
            clock=lambda: world.now + skew,
            timing=TIMING,
        )
        self.work: Coroutine[Any, Any, bool] | None = None

    def step(self) -> None:
        """Run until the next call."""
        if self.work is None:
            self.work = self.manager._reconcile()
        try:
            self.work.send(None)
        except (StopIteration, Conflict):
            self.work = None

    def reconcile(self) -> None:
        """Start a reconciliation and run it to its end."""
        self.abort()
        self.step()
        self.finish()

    def finish(self) -> None:
        """Run the current reconciliation to its end."""
        while self.work:
            self.step()

    def abort(self) -> None:
        """Abort the current reconciliation, as a call that times out does."""
        if self.work:
            self.work.close()
            self.work = None

    @property
    def leaf(self) -> x509.Certificate | None:
        shown = self.serving._loaded
        return x509.load_pem_x509_certificate(shown[0]) if shown else None


class World(RuleBasedStateMachine):
    """Three replicas, two API servers that see the configuration late, and an administrator who breaks things."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        probe = SelfManaged(
            None, OBJECTS, RULES, ServingCertificate(lambda: self.now), clock=lambda: self.now, timing=TIMING
        )  # type: ignore[arg-type]
        self.cluster = SimulatedCluster(probe._secret_path, TRUST.path)
        self.published: list[tuple[datetime, tuple[x509.Certificate, ...]]] = [(self.now, ())]
        self.known = [0, 0]
        self.losses = 0
        self.latest: x509.Certificate | None = None
        self.late: set[x509.Name] = set()
        self.replicas: list[Replica] = []

    @initialize(skews=st.tuples(*[st.integers(-SKEW.seconds, SKEW.seconds)] * 3), exists=st.booleans())
    def install(self, skews: tuple[int, ...], exists: bool) -> None:
        self.replicas = [Replica(self, timedelta(seconds=skew)) for skew in skews]
        self.cluster.put(self.cluster.secret_path, {"metadata": {"name": "certificates"}})
        if exists:
            self.create_configuration()

    @rule(index=replicas, times=st.integers(1, 6))
    def replica_continues(self, index: int, times: int) -> None:
        for _ in range(times):
            self.replicas[index].step()
            self.note()

    @rule(index=replicas)
    def replica_reconciles(self, index: int) -> None:
        self.replicas[index].reconcile()
        self.note()

    @rule(index=replicas)
    def replica_restarts(self, index: int) -> None:
        skew = self.replicas[index].serving._clock() - self.now
        self.replicas[index].abort()
        self.replicas[index] = Replica(self, skew)

    @rule(index=st.integers(0, 1))
    def api_server_learns(self, index: int) -> None:
        self.learn(index, len(self.published) - 1)

    @rule(seconds=st.integers(1, 60))
    def seconds_pass(self, seconds: int) -> None:
        self.pass_time(timedelta(seconds=seconds))

    @rule(days=st.integers(1, 100))
    def days_pass(self, days: int) -> None:
        self.pass_time(timedelta(days=days))

    @precondition(lambda self: self.losses < 3 and self.installed())
    @rule(data=st.sampled_from([None, {}, {"ca.crt": "Z2FyYmFnZQ=="}, {"previous-ca.crt": "?"}, {"tls.crt": ""}]))
    def secret_is_lost(self, data: dict[str, str] | None) -> None:
        """Remove or damage the Secret while the bundle holds its authorities and no replica has just read it."""
        for replica in self.replicas:
            replica.abort()
        self.losses += 1
        if data is None:
            self.cluster.remove(self.cluster.secret_path)
        else:
            present = self.cluster.objects.get(self.cluster.secret_path, {}).get("data", {})
            self.cluster.put(self.cluster.secret_path, {"data": {**present, **data} if data else {}})

    @precondition(lambda self: not self.losses)
    @rule()
    def configuration_is_deleted(self) -> None:
        self.cluster.remove(self.cluster.configuration_path)
        self.note()

    @precondition(lambda self: self.cluster.configuration_path not in self.cluster.objects)
    @rule()
    def create_configuration(self) -> None:
        self.cluster.put(self.cluster.configuration_path, CONFIGURATION)
        self.note()

    def installed(self) -> bool:
        leaves = {replica.leaf for replica in self.replicas} - {None}
        trusted = self.published[-1][1]
        return all(any(issued_by(leaf, authority) for authority in trusted) for leaf in leaves if leaf)

    def pass_time(self, time: timedelta) -> None:
        """Let time pass; no API server is further behind than the settling time."""
        self.now += time
        seen = max(i for i, (when, _) in enumerate(self.published) if i == 0 or when <= self.now - RULES.settle)
        for index in range(len(self.known)):
            self.learn(index, max(self.known[index], seen))

    def see(self) -> None:
        """Let an API server learn at once what has been published."""
        self.note()
        self.learn(0, len(self.published) - 1)
        self.every_api_server_accepts_every_leaf()

    def learn(self, index: int, known: int) -> None:
        self.known[index] = known
        views = [{authority.subject for authority in self.published[known][1]} for known in self.known]
        self.late -= set.intersection(*views)

    def note(self) -> None:
        trusted = TRUST.published(self.cluster.objects.get(self.cluster.configuration_path, {}))
        if trusted != self.published[-1][1]:
            self.published.append((self.now, trusted))
        self.note_leaf()

    def note_leaf(self) -> None:
        """Remember a leaf that was issued when none was in service; API servers may learn of it later."""
        before, self.latest = self.latest, self.leaf_of_the_secret() or self.latest
        in_service = {before, *(replica.leaf for replica in self.replicas)} - {None, self.latest}
        if self.latest and self.latest != before and all(self.ended(leaf) for leaf in in_service if leaf):
            self.late.add(self.latest.issuer)

    def leaf_of_the_secret(self) -> x509.Certificate | None:
        data = self.cluster.objects.get(self.cluster.secret_path, {}).get("data", {})
        with suppress(ValueError):
            return x509.load_pem_x509_certificate(base64.b64decode(data.get("tls.crt", "")))
        return None

    def ended(self, leaf: x509.Certificate) -> bool:
        return self.now + SKEW >= leaf.not_valid_after_utc

    @invariant()
    def every_api_server_accepts_every_leaf(self) -> None:
        for replica in self.replicas:
            leaf = replica.leaf
            if leaf is None or leaf.issuer in self.late or self.ended(leaf):
                continue
            for known in self.known:
                if trusted := self.published[known][1]:
                    policy = PolicyBuilder().store(Store(trusted)).time(self.now)
                    policy.build_server_verifier(x509.DNSName(NAME)).verify(leaf, [])

    def teardown(self) -> None:
        """Once nothing disturbs them, all serve one valid leaf that the configuration trusts, and write no more."""
        if not self.replicas:
            return
        if self.cluster.configuration_path not in self.cluster.objects:
            self.create_configuration()
        self.settle_down(self.replicas)
        writes = self.cluster.writes
        self.reconcile_all(self.replicas)
        assert self.cluster.writes == writes
        [leaf] = {replica.leaf for replica in self.replicas}
        assert leaf is not None
        assert all(replica.serving.ready for replica in self.replicas)
        self.late.clear()
        for index in range(len(self.known)):
            self.learn(index, len(self.published) - 1)
        assert self.published[-1][1]
        self.every_api_server_accepts_every_leaf()

    def settle_down(self, replicas: list[Replica], times: int = 10) -> None:
        """Let replicas reconcile until nothing is left to do."""
        for _ in range(times):
            self.reconcile_all(replicas)

    def reconcile_all(self, replicas: list[Replica]) -> None:
        for replica in replicas:
            replica.reconcile()
            self.see()
        self.pass_time(timedelta(seconds=TIMING.poll_s))


@pytest.mark.parametrize("calls", range(1, 13))
def test_a_delayed_replica_reverts_nothing(calls: int) -> None:
    """Stop a replica after some calls of its rotation, and continue after the others have rotated."""
    world = World()
    world.install(skews=(0, 0, 0), exists=True)
    late, *others = world.replicas
    world.settle_down(world.replicas)
    world.pass_time(timedelta(days=551))
    for _ in range(calls):
        late.step()
        world.note()
    for days in [0] + [58] * 10:
        world.pass_time(timedelta(days=days))
        world.settle_down(others)
    late.finish()
    world.see()
    world.settle_down([*others, late])


@pytest.mark.parametrize("calls", range(1, 4))
def test_a_replica_delayed_past_the_loss_of_the_secret_reverts_nothing(calls: int) -> None:
    """Publish the bundle only if nothing was published since the read."""
    world = World()
    world.install(skews=(0, 0, 0), exists=True)
    late, *others = world.replicas
    world.settle_down(world.replicas)
    for _ in range(calls):
        late.step()
    world.cluster.remove(world.cluster.secret_path)
    world.settle_down(others)
    late.finish()
    world.see()
    world.settle_down([*others, late])


def test_clients_that_read_the_bundle_at_their_start_accept_leaves_for_the_overlap() -> None:
    overlap = timedelta(days=25)
    world = World()
    world.install(skews=(0, 0, 0), exists=True)
    world.replicas = [Replica(world, timedelta(), replace(RULES, overlap=overlap))]
    world.settle_down(world.replicas)
    before = world.published[-1][1]
    for days in [58] * 9 + [1] * 60:
        world.pass_time(timedelta(days=days))
        world.settle_down(world.replicas, 3)
        if world.published[-1][1] != before:
            break
    rotated = world.now
    while issued_by(leaf := world.replicas[0].leaf, before[0]):  # type: ignore[arg-type]
        assert not world.ended(leaf)  # type: ignore[arg-type]
        world.pass_time(timedelta(days=1))
        world.settle_down(world.replicas, 3)
    assert overlap <= world.now - rotated < overlap + timedelta(days=2)


TestRotation = World.TestCase
