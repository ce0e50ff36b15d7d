"""Other programs that show curves, over the same values: TensorBoard, trackio and aim."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from mldiagnostics.sinks.event_frames import frames, scalar_event, version_event
from support.programs.environments import interpreter
from support.run_files import START_S, metric_name

from bench.view_programs import (
    COMPLETE,
    COMPLETE_TRANSFER,
    FIRST,
    FIRST_TRANSFER,
    METRICS,
    STEPS,
    Figures,
    Program,
    Traffic,
    browser_page,
    first_curve,
    served,
    until,
)

NAMES = [metric_name(at) for at in range(METRICS)]
AIM_STEPS = 10_000
OFFLINE = {"BROWSER": "true", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}
"""Variables of the servers: open no browser, load and report nothing."""


def write_events(folder: Path) -> None:
    """Write the values as an event file, as the SDK's sink writes it."""
    run = folder / "large"
    run.mkdir()
    with (run / f"events.out.tfevents.{START_S:.0f}.host.1.0").open("wb") as file:
        file.write(frames([version_event(START_S)]))
        for first in range(0, STEPS, 1000):
            steps = range(first, min(STEPS, first + 1000))
            values = {step: [(name, step + at / 1000) for at, name in enumerate(NAMES)] for step in steps}
            file.write(frames([scalar_event(START_S + step / 10, step, values[step]) for step in steps]))


async def tensorboard(folder: Path) -> Figures:
    """Open the page once there are points: an empty page does not load again. Count from the start of listening."""
    program = Path(sys.executable).with_name("tensorboard")
    arguments = (f"--logdir={folder}", "--port=0", "--load_fast=true")
    async with browser_page() as page, served(program, *arguments) as server:
        curve = f"{server.url}data/plugin/scalars/scalars?{urlencode({'run': 'large', 'tag': NAMES[-1]})}"
        await until(lambda: bool(_read(curve)))
        traffic = Traffic(page)
        figures = await first_curve(page, traffic, f"{server.url}#timeseries", "line-chart", since=server.listening)
        await until(lambda: _read(curve)[-1][1] == STEPS - 1)
        complete_s = time.monotonic() - server.listening
        return {**figures, COMPLETE: f"{complete_s:.0f} s ({len(_read(curve))} of a curve)", **server.usage()}


def write_trackio(folder: Path) -> None:
    """Write the values with trackio's bulk import."""
    _write("loggers", "trackio", folder, STEPS)


async def trackio(folder: Path) -> Figures:
    """Open the page; its server reads all points at each request for curves."""
    program = interpreter("loggers").with_name("trackio")
    variables = {**OFFLINE, "TRACKIO_DIR": str(folder), "GRADIO_SERVER_PORT": str(_free_port())}
    async with browser_page() as page, served(program, "show", **variables) as server:
        traffic = Traffic(page)
        figures = await first_curve(page, traffic, f"{server.url}?project=large", ".vega-embed canvas")
        if answer := await traffic.last_answer("/get_logs_batch"):
            complete_s = float(figures[FIRST].removesuffix(" s"))
            figures[COMPLETE] = f"{complete_s:.0f} s ({len(answer['data'][0]['logs'])} of a curve)"
            figures[COMPLETE_TRANSFER] = figures[FIRST_TRANSFER]
        return {**figures, **server.usage()}


def write_aim(folder: Path) -> None:
    """Write the first steps with aim's storage: all of them would take 15 minutes."""
    _write("aim", "aim", folder, AIM_STEPS)


async def aim(folder: Path) -> Figures:
    """Open the run's page once aim has indexed the run. Count from the start of listening."""
    program = interpreter("aim").with_name("aim")
    arguments = ("up", f"--repo={folder}", "--host=127.0.0.1", f"--port={_free_port()}")
    variables = {**OFFLINE, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    run = next((folder / ".aim/meta/chunks").iterdir()).name
    async with browser_page() as page, served(program, *arguments, **variables) as server:
        info = f"{server.url}api/runs/{run}/info/"
        await until(lambda: len(_read(info).get("traces", {}).get("metric", ())) == METRICS)
        traffic = Traffic(page)
        page_url, curve = f"{server.url}runs/{run}/metrics", "svg.Visualization path.Line"
        figures = await first_curve(page, traffic, page_url, curve, since=server.listening)
        if answer := await traffic.last_answer("/metric/get-batch"):
            figures[COMPLETE] = f"none ({len(answer[0]['values'])} of a curve)"
        return {**figures, **server.usage()}


PEERS = (
    Program("TensorBoard", write_events, tensorboard),
    Program("trackio", write_trackio, trackio),
    Program("aim", write_aim, aim, AIM_STEPS),
)


def _write(environment: str, client: str, folder: Path, steps: int) -> None:
    script = Path(__file__).with_name("view_clients.py")
    run = json.dumps({"names": NAMES, "steps": steps, "start_s": START_S})
    command = [str(each) for each in (interpreter(environment), script, client, folder, run)]
    subprocess.run(command, check=True, env={**os.environ, **OFFLINE, "PYTHONPATH": ""})


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _read(url: str) -> Any:
    """Return JSON from a server; an empty object before it has some."""
    try:
        with urlopen(url, timeout=60) as response:
            return json.load(response)
    except URLError:
        return {}
