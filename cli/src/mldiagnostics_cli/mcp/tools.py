"""The tools of agents: each is one command of `mldiag`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from mldiagnostics_cli.mcp.answers import answer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.mcp.commands import CommandRunner


Answer = dict[str, Any]
Phase = Literal["Pending", "Active", "Completed", "Failed"]
Run = Annotated[str, Field(max_length=1024, description="Id of a run or its beginning, its name, or its directory.")]
Session = Annotated[
    str, Field(max_length=1024, description="`<run>/<session>`, or a run or log directory for its newest session.")
]
Metric = Annotated[str, Field(max_length=512)]


class RunTools:
    """Tools that read. A docstring is the description that a model gets."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner

    async def list_runs(
        self,
        name: Annotated[str | None, Field(max_length=512, description="Pattern of the name; * stands for any.")] = None,
        group: Annotated[str | None, Field(max_length=512)] = None,
        phase: Phase | None = None,
        limit: Annotated[int, Field(ge=1, le=500)] = 20,
    ) -> Answer:
        """List machine-learning runs, the newest first: phase, progress, hosts and goodput."""
        return await self._answer("runs", "list", options=_given(name=name, group=group, phase=phase, limit=limit))

    async def get_run(
        self,
        run: Run,
        metrics: Annotated[list[Metric] | None, Field(max_length=8)] = None,
        rank: Annotated[int, Field(ge=0)] = 0,
    ) -> Answer:
        """Read one run: attempts, hosts, sessions, configurations, and curves of the given metrics of a rank."""
        options = [f"--metric={each}" for each in metrics or ()]
        return await self._answer("runs", "get", options=[*options, *_given(rank=rank)], arguments=[run])

    async def get_goodput(self, run: Run) -> Answer:
        """Read where the time of a run went: productive and lost time, attempts and disruptions, in seconds."""
        return await self._answer("goodput", arguments=[run])

    async def compare_runs(self, runs: Annotated[list[Run], Field(min_length=2, max_length=8)]) -> Answer:
        """Compare runs: progress, goodput, the configurations that differ, and the last values of metrics."""
        return await self._answer("runs", "compare", arguments=runs)

    async def list_sessions(self, run: Run) -> Answer:
        """List the profile sessions of a run, the newest last; `<run>/<session>` names one for other tools."""
        return await self._answer("profiles", "list", arguments=[run])

    async def diagnose(self, session: Session) -> Answer:
        """Find the host, phase and operation that make the steps of a session slow, with costs and the next step."""
        return await self._answer("diagnose", arguments=[session])

    async def compare_sessions(self, before: Session, after: Session) -> Answer:
        """Compare the steps of two sessions, operation by operation."""
        return await self._answer("diagnose", options=_given(against=before), arguments=[after])

    async def _answer(self, *command: str, options: Sequence[str] = (), arguments: Sequence[str] = ()) -> Answer:
        return answer_of(await self._runner.document(*command, options=options, arguments=arguments))


class CaptureTools:
    """Tools that change something: a capture starts the profiler of running processes."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner

    async def capture(
        self,
        target: Annotated[
            str,
            Field(max_length=1024, description="Run, workload such as jobset/trainer, pod/NAME, or HOST:PORT."),
        ],
        duration: Annotated[str, Field(pattern=r"^[0-9]{1,5}(ms|s)$", description="Such as 500ms or 2s.")] = "2s",
        ranks: Annotated[str | None, Field(pattern=r"^[0-9,-]{1,200}$", description="Such as 0,4-7.")] = None,
    ) -> Answer:
        """Profile running processes on all hosts at the same moment. They go on; it costs storage and some speed."""
        options = ["--wait", *_given(duration=duration, ranks=ranks)]
        return answer_of(await self._runner.document("capture", options=options, arguments=[target]))


def _given(**options: object) -> list[str]:
    """Return the options that have a value."""
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
