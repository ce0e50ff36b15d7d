"""Events written as an XSpace, read back with the official descriptors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.trace import summarize
from mldiagnostics.profiling.xspace import HOST_PLANE, XSpaceLine, encode, gpu_plane
from support.servers.profiler_protos import message

START_NS = 1_795_243_877_512_895_656
SECOND_NS = 10**9

EVENTS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=("Cs",)), min_size=1),
        st.integers(START_NS, START_NS + SECOND_NS),
        st.integers(0, SECOND_NS),
    )
)
LINES = st.dictionaries(st.integers(1, 2**31), st.builds(XSpaceLine, st.text(max_size=20), EVENTS), max_size=4)
PLANES = st.dictionaries(st.sampled_from([HOST_PLANE, *map(gpu_plane, range(4))]), LINES, max_size=4)


def encoded(planes: dict[str, dict[int, XSpaceLine]]) -> bytes:
    return encode(planes, host="trainer-0", start_ns=START_NS, stop_ns=START_NS + SECOND_NS)


@given(PLANES)
def test_property_the_official_descriptors_read_every_event(planes: dict[str, dict[int, XSpaceLine]]) -> None:
    space = message("XSpace").FromString(encoded(planes))
    read = {
        plane.name: {
            line.id: (
                line.name,
                [
                    (
                        plane.event_metadata[event.metadata_id].name,
                        line.timestamp_ns + event.offset_ps // 1000,
                        event.duration_ps // 1000,
                    )
                    for event in line.events
                ],
            )
            for line in plane.lines
        }
        for plane in space.planes
        if plane.name != "Task Environment"
    }
    assert {name: set(lines) for name, lines in read.items()} == {name: set(lines) for name, lines in planes.items()}
    for name, lines in planes.items():
        for number, line in lines.items():
            title, events = read[name][number]
            assert title == line.name
            assert sorted(events) == sorted(line.events)
            assert [start for _, start, _ in events] == sorted(start for _, start, _ in events)


@given(PLANES)
def test_property_the_capture_engine_reads_times_and_whether_there_are_events(
    planes: dict[str, dict[int, XSpaceLine]],
) -> None:
    summary = summarize(memoryview(encoded(planes)))
    assert (summary.start_ns, summary.stop_ns) == (START_NS, START_NS + SECOND_NS)
    assert summary.has_events is any(line.events for lines in planes.values() for line in lines.values())


def test_the_part_of_an_event_before_the_recording_is_cut_off() -> None:
    line = XSpaceLine("main", [("step", START_NS - 300, 1000), ("gone", START_NS - 300, 100)])
    space = message("XSpace").FromString(encoded({HOST_PLANE: {1: line}}))
    times = {(event.offset_ps, event.duration_ps) for event in space.planes[0].lines[0].events}
    assert times == {(0, 700_000), (0, 0)}


def test_the_host_is_named() -> None:
    assert list(message("XSpace").FromString(encoded({})).hostnames) == ["trainer-0"]
