from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.events.packing import ClockStep, apply_clock_steps
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.http.intake import misses_events
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.limits import JOURNAL_STARTS, JOURNAL_WRITES_OF_NAMESPACE
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import LogDirectory, OpenStores, Storage
from support.cluster.reports import apply, body_of

if TYPE_CHECKING:
    from collections.abc import Callable


KEY = RunKey("ml", "a" * 64)
ROOT = Location.parse("volume:///runs")
START = 1_790_000_000_000_000
HOUR = 3_600_000_000
DEADLINE_S = 60
REPORT = body_of({"v": 1, "incarnation": f"{0:08x}", "sequence": 1, "sent": 1.0, "rank": 0, "run": {"name": "r"}})
EVENTS: list[packing.Entry] = [
    Event(START + at * 1_000_000 + (HOUR if at > 20 else 0), EventCode.STEP_START, at, 0, KEY.run_id)
    for at in range(40)
]
EVENTS.insert(21, ClockStep(HOUR))


class Delivery(NamedTuple):
    """A report of a process to one of two leaders; reports of one process follow each other."""

    leader: int
    process: int
    events: int
    repeated: bool
    """Whether the process sends it to the other leader too, because the answer takes too long."""


class SteppedDirectory(LogDirectory):
    """A directory whose calls wait for their turn."""

    turns: asyncio.Queue[asyncio.Event]

    async def _call(self, call: Callable[[], Any]) -> Any:
        turn = asyncio.Event()
        self.turns.put_nowait(turn)
        await turn.wait()
        return call()


class SteppedStorage(Storage):
    def __init__(self, root: Path) -> None:
        self.stores = OpenStores(root)
        super().__init__(root, stores=self.stores)
        self.turns: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    def directory(self, location: Location) -> LogDirectory:
        made = SteppedDirectory(location, lambda: self.stores.open(location), ThreadPoolExecutor(1))
        made.turns = self.turns
        return made


class JournalingLeader:
    def __init__(self, root: Path, name: str) -> None:
        self.storage = SteppedStorage(root)
        self.table = ReportTable()
        self.journal = Journal(self.table, self.storage, ROOT)
        self.name = name

    async def report(self, process: int, sequence: int, first: int, count: int) -> tuple[int, int]:
        """Take a report as the endpoint does; return what is acknowledged."""
        incarnation = f"{process:08x}"
        document: dict[str, Any] = {"v": 1, "incarnation": incarnation, "sequence": sequence, "sent": 1.0}
        document["rank"] = process
        if process == 0:
            document |= {"run": {"name": "r"}, "events": {"first": first, "items": packing.pack(EVENTS[first:count])}}
        body = body_of(document)
        if self.table.owner(KEY) is None or misses_events(self.table, KEY, body):
            await self.journal.recall(KEY)
        apply(self.table, KEY, body, Sender("ml", "default", "pod", "uid", "node"), 1.0)
        await self.journal.flush(KEY)
        answer = self.table.answer(KEY, incarnation)
        return answer.persisted_sequence, answer.persisted_events


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def deliver(
    leaders: list[JournalingLeader], deliveries: list[Delivery], schedule: list[int]
) -> Counter[tuple[int, str]]:
    """Deliver the reports while the calls of both leaders to the storage take turns as scheduled."""
    sequences, acknowledged, known = Counter[int](), Counter[tuple[int, str]](), 0
    latest: dict[int, asyncio.Task[None]] = {}

    async def send(delivery: Delivery, before: asyncio.Task[None] | None) -> None:
        nonlocal known
        if before:
            await before
        sequences[delivery.process] += 1
        first, known = acknowledged[delivery.process, "events"], min(known + delivery.events, len(EVENTS))
        report = delivery.process, sequences[delivery.process], first, known
        others = [1 - delivery.leader] if delivery.repeated else []
        answers = await asyncio.gather(*(leaders[each].report(*report) for each in (delivery.leader, *others)))
        for sequence, events in answers:
            assert events <= known
            acknowledged[delivery.process, "events"] = max(events, first)
            acknowledged[delivery.process, "sequence"] = max(sequence, acknowledged[delivery.process, "sequence"])

    for delivery in deliveries:
        before = latest.get(delivery.process)
        latest[delivery.process] = asyncio.create_task(send(delivery, before))
    turns = iter(schedule)
    while not all(task.done() for task in latest.values()):
        await settle()
        waiting = [leader for leader in leaders if not leader.storage.turns.empty()]
        if waiting:
            waiting[next(turns, 0) % len(waiting)].storage.turns.get_nowait().set()
    await asyncio.gather(*latest.values())
    return acknowledged


@given(
    st.lists(
        st.builds(Delivery, st.integers(0, 1), st.integers(0, 1), st.integers(1, 8), st.booleans()),
        min_size=2,
        max_size=8,
    ),
    st.lists(st.integers(0, 1), max_size=80),
)
def test_two_leaders_at_a_time_lose_nothing_that_one_acknowledged(
    deliveries: list[Delivery], schedule: list[int]
) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            leaders = [JournalingLeader(root, name) for name in "ab"]
            acknowledged = await deliver(leaders, deliveries, schedule)
            third = Storage(root)
            table = ReportTable()
            await Journal(table, third, ROOT).recall(KEY)
            for process in {delivery.process for delivery in deliveries}:
                answer = table.answer(KEY, f"{process:08x}")
                assert answer.persisted_sequence >= acknowledged[process, "sequence"]
                assert answer.persisted_events >= acknowledged[process, "events"]
            persisted = table.answer(KEY, f"{0:08x}").persisted_events
            history, expected = History(), History()
            if persisted:
                open_log(str(root / "runs" / KEY.run_id / "reported")).read_new(history, utc_now())
            for event in apply_clock_steps(EVENTS[:persisted]):
                expected.add(event)
            assert history.size == expected.size
            end = START + 2 * HOUR
            if persisted:
                assert history.of(end).account(end) == expected.of(end).account(end)
            for storage in (third, *(leader.storage for leader in leaders)):
                storage.close()

    asyncio.run(run())


async def test_a_leader_that_stops_gives_up_storage_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldiagnostics_operator.control_plane.journal.journal.JOURNAL_CLOSE_S", 0.1)
    leader = JournalingLeader(tmp_path, "a")
    apply(leader.table, KEY, REPORT, Sender("ml", "default", "pod", "uid", "node"), 1.0)
    running = asyncio.create_task(leader.journal.run())
    async with asyncio.timeout(DEADLINE_S):
        await leader.storage.turns.get()  # this call does not return
        running.cancel()
        await leader.journal.close()
    assert leader.table.answer(KEY, f"{0:08x}").persisted_sequence == 0
    leader.storage.close()


async def test_a_leader_that_stops_writes_what_is_not_written_yet(tmp_path: Path) -> None:
    storage, table = Storage(tmp_path), ReportTable()
    apply(table, KEY, REPORT, Sender("ml", "default", "pod", "uid", "node"), 1.0)
    await Journal(table, storage, ROOT).close()
    storage.close()
    assert table.answer(KEY, f"{0:08x}").persisted_sequence == 1


async def test_a_run_that_ends_is_written_before_a_fleet_that_waits(tmp_path: Path) -> None:
    written = list[RunKey]()
    storage, table = SteppedStorage(tmp_path), ReportTable()
    journal = Journal(table, storage, ROOT, lambda key, _: written.append(key), final_wait_s=DEADLINE_S)
    for number in range(8 * JOURNAL_STARTS):
        key = RunKey(f"team-{number % 16}", f"{number:064x}")
        apply(table, key, REPORT, Sender(key.namespace, "default", "pod", "uid", "node"), 1.0)
    writing = asyncio.create_task(journal.run())
    async with asyncio.timeout(DEADLINE_S):
        (await storage.turns.get()).set()
        apply(table, KEY, REPORT, Sender("ml", "default", "pod", "uid", "node"), 1.0)
        ending = asyncio.create_task(journal.flush(KEY))
        while not ending.done():
            (await storage.turns.get()).set()
            await settle()
    assert written.index(KEY) <= JOURNAL_STARTS
    writing.cancel()
    storage.close()


async def test_runs_that_end_in_one_namespace_leave_writes_for_another(tmp_path: Path) -> None:
    storage, table = SteppedStorage(tmp_path), ReportTable()
    journal = Journal(table, storage, ROOT, final_wait_s=DEADLINE_S)
    ends = [RunKey("many", f"{number:064x}") for number in range(4 * JOURNAL_STARTS)]
    for key in (*ends, KEY):
        apply(table, key, REPORT, Sender(key.namespace, "default", "pod", "uid", "node"), 1.0)
    tasks = [asyncio.create_task(each) for each in (*map(journal.flush, ends), journal.run())]
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(JOURNAL_WRITES_OF_NAMESPACE + 1):  # none of these calls returns meanwhile
            await storage.turns.get()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    storage.close()


@pytest.mark.parametrize("processes", ['"a":{}', '"a":5', '"a":{"sequence":1,"firstReceived":"x","host":{}}', "torn"])
async def test_a_journal_that_a_user_wrote_is_ignored_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, processes: str
) -> None:
    storage, table = Storage(tmp_path), ReportTable()
    journal = Journal(table, storage, ROOT)
    apply(table, KEY, REPORT, Sender("ml", "default", "pod", "uid", "node"), 1.0)
    await journal.flush(KEY)
    replace_processes(tmp_path, processes)
    following = ReportTable()
    journal = Journal(following, storage, ROOT)
    await journal.recall(KEY)
    assert "the journal is ignored" in caplog.text
    assert following.view(KEY) is None
    apply(following, KEY, REPORT, Sender("ml", "default", "pod", "uid", "node"), 2.0)
    await journal.flush(KEY)
    assert following.answer(KEY, f"{0:08x}").persisted_sequence == 1
    last = ReportTable()
    await Journal(last, storage, ROOT).recall(KEY)
    storage.close()
    assert last.view(KEY) is not None


@pytest.mark.parametrize("first", [None, RunKey("ml", KEY.run_id), RunKey("other", KEY.run_id)])
async def test_the_journal_of_an_unknown_owner_is_read_where_it_is(tmp_path: Path, first: RunKey | None) -> None:
    """A workload, perhaps of another namespace, may have the id of a run that is reported from outside the cluster."""
    storage, inside, outside = Storage(tmp_path), Sender("any", "default", "pod", "uid"), Sender("ml", "trainer")
    for key, sender in ((first, inside), (KEY, outside)):
        if key is not None:
            table = ReportTable()
            apply(table, key, REPORT, sender, 1.0)
            await Journal(table, storage, ROOT).close()
    following = ReportTable()
    await Journal(following, storage, ROOT).recall(KEY)
    assert following.owner(KEY) == ("" if first == KEY else outside.owner)
    assert following.answer(KEY, f"{0:08x}").persisted_sequence == 1
    storage.close()


def replace_processes(volume: Path, processes: str) -> None:
    [file] = volume.rglob("state.json")
    head, separator, _ = file.read_text().partition("{\n")
    file.write_text(f"{head}{separator}{processes}\n}}}}")


async def test_a_journal_in_a_bucket_is_recalled_by_the_next_leader(bucket_url: str, tmp_path: Path) -> None:
    root = Location.parse(bucket_url)
    storage = Storage(tmp_path)
    first, second = ReportTable(), ReportTable()
    items = packing.pack(EVENTS[:10])
    document = {"v": 1, "incarnation": f"{0:08x}", "sequence": 1, "sent": 1.0, "rank": 0, "run": {"name": "r"}}
    body = body_of({**document, "events": {"first": 0, "items": items}})
    apply(first, KEY, body, Sender("ml", "default", "pod", "uid", "node"), 1.0)
    await Journal(first, storage, root).flush(KEY)
    await Journal(second, storage, root).recall(KEY)
    storage.close()
    for table in (first, second):
        answer = table.answer(KEY, f"{0:08x}")
        assert (answer.persisted_sequence, answer.persisted_events) == (1, 10)
    history = History()
    open_log(f"{bucket_url}/{KEY.run_id}/reported").read_new(history, utc_now())
    assert history.size == 10
