from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane.report import MAX_SESSIONS
from mldiagnostics_api.runs.sessions import adopted_sessions, capture_sessions, session_messages, with_sessions
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession
from support.cluster import plans

NOW = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def session(name: str, source: str = "Capture", state: str = "Running", seconds: int = 0) -> RunSession:
    return RunSession(id=name, source=source, state=state, start_time=NOW + timedelta(seconds=seconds))


def states(status: MLRunStatus) -> dict[str, tuple[str | None, str | None]]:
    return {each.id: (each.source, each.state) for each in status.profile_sessions or ()}


def test_a_capture_is_a_session_of_each_run_of_its_targets() -> None:
    plan = plans.plan(3)
    targets = [replace(target, run_id=run) for target, run in zip(plan.targets, ("r1", "r2", None), strict=True)]
    sessions = capture_sessions(replace(plan, targets=tuple(targets)), "nightly", "Succeeded", stopped=NOW)
    assert set(sessions) == {"r1", "r2"}
    one = sessions["r1"]
    assert (one.id, one.source, one.capture, one.directory) == ("capture-1", "Capture", "nightly", "volume:///out")
    assert (one.start_time, one.stop_time) == (plan.planned_start.replace(microsecond=0), NOW)


def test_files_show_the_sessions_that_nobody_reported() -> None:
    files = [
        ("plugins/profile/a0-s100/w-1.xplane.pb", NOW + timedelta(seconds=5)),
        ("plugins/profile/a0-s100/w-0.xplane.pb", NOW),
        ("plugins/profile/a0-s100/cache.json", NOW + timedelta(hours=1)),
        ("records/a0-r0-1-00001.jsonl", NOW),
    ]
    (adopted,) = adopted_sessions(files, "volume:///ml/run")
    assert (adopted.id, adopted.source, adopted.start_time, adopted.stop_time) == (
        "a0-s100",
        "Files",
        NOW,
        NOW + timedelta(seconds=5),
    )


def test_names_that_a_status_cannot_have_are_left_out() -> None:
    names = ["a" * 254, "b\udcff", "c\nd", "e" * 253, "größe"]
    files = [(f"plugins/profile/{name}/host.xplane.pb", NOW) for name in names]
    assert [each.id for each in adopted_sessions(files, "volume:///ml/run")] == ["e" * 253, "größe"]


def test_a_capture_updates_its_session_and_files_replace_nothing() -> None:
    known = MLRunStatus(profile_sessions=[session("c"), session("p", "Program"), session("f", "Files", "Stored")])
    later = [session("c", state="Succeeded"), session("p", "Files"), session("c", "Files"), session("new", "Files")]
    assert states(with_sessions(known, later)) == {
        "c": ("Capture", "Succeeded"),
        "p": ("Program", "Running"),
        "f": ("Files", "Stored"),
        "new": ("Files", "Running"),
    }
    assert states(with_sessions(known, [session("f", "Program", "Done")]))["f"] == ("Program", "Done")


@given(
    st.lists(
        st.builds(
            session,
            st.sampled_from("abcdefgh"),
            st.sampled_from(["Capture", "Files"]),
            st.just("Stored"),
            st.integers(0, 9),
        ),
        max_size=12,
    )
)
def test_sessions_are_merged_once(sessions: list[RunSession]) -> None:
    once = with_sessions(MLRunStatus(), sessions)
    assert with_sessions(once, sessions) == once
    assert {each.id for each in once.profile_sessions or ()} == {each.id for each in sessions}


def test_the_newest_sessions_are_kept() -> None:
    many = with_sessions(MLRunStatus(), [session(f"s-{number}", seconds=number) for number in range(40)])
    assert many.profile_sessions is not None
    assert [each.id for each in many.profile_sessions] == [f"s-{number}" for number in range(8, 8 + MAX_SESSIONS)]


def test_profiles_that_end_are_in_one_message_each_once() -> None:
    def ended(name: str, source: str, state: str, seconds: int = 0, **parts: str) -> RunSession:
        times = {"stop_time": NOW + timedelta(seconds=seconds)}
        return session(name, source, state, seconds).model_copy(update=parts | times)

    running = MLRunStatus(profile_sessions=[session("s-1")])
    assert list(session_messages(MLRunStatus(), running)) == []
    nightly = ended("s-1", "Capture", "Succeeded", capture="nightly", directory="volume:///run")
    done = with_sessions(running, [nightly, ended("lost", "Program", "failed"), session("other")])
    assert list(session_messages(running, done)) == [
        ("Captured", "profile s-1 of capture nightly: Succeeded, in volume:///run", False),
        ("CaptureFailed", "profile lost of the program: failed", True),
    ]
    assert list(session_messages(done, done)) == []
    many = with_sessions(MLRunStatus(), [ended(f"f-{number}", "Files", "Stored", number) for number in range(9)])
    [(_, message, _)] = session_messages(MLRunStatus(), many)
    assert message.startswith("profile f-6 found in the storage of the run: Stored; ")
    assert message.endswith("; and 6 earlier ones")
