"""Time that pulses take from a training, and bytes that they store, beside a capture."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mldiagnostics.layout import CAPTURE_RECORD, DIAGNOSIS_RECORD, PROFILE_DIR, SUMMARY_SUFFIX, trace_key
from mldiagnostics.store import open_store
from mldiagnostics_api.captures.pulse import kept_hosts, pulse_ms
from mldiagnostics_api.captures.request import DEFAULT_DURATION_MS
from mldiagnostics_diagnosis.sessions import diagnose_session

from bench.pulse_training import PAIRS, STEP_S, STEPS
from bench.table import Section

EVERY_S = 600.0
HOSTS, SAMPLE = 1000, 16
MB = 1e6


@dataclass(frozen=True)
class Cost:
    """Seconds that one recording takes from the training, and the stored sessions."""

    median_s: float
    bound_s: float
    sessions: Path

    @property
    def traces(self) -> list[Path]:
        """One trace for each recording."""
        return sorted(self.sessions.glob("*/*.xplane.pb"))


def measure() -> Section:
    """Measure pulses and captures in pairs of blocks with and without."""
    load = os.getloadavg()[0]
    rows: list[tuple[str, str, str]] = []
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, duration_ms in (("pulse", pulse_ms(STEP_S)), ("capture", DEFAULT_DURATION_MS)):
            print(f"... {PAIRS} pairs with a {name} (about {2 * PAIRS * STEPS * STEP_S / 60:.0f} min)", flush=True)
            cost = _cost(duration_ms, Path(folder, name))
            costs.append(cost)
            trace_kb = statistics.median(trace.stat().st_size for trace in cost.traces) / 1000
            rows += [
                (f"a {name} of {duration_ms} ms: training loses, ms", f"{cost.median_s * 1000:.0f}", ""),
                ("… 95 % bound of the mean, ms", f"{cost.bound_s * 1000:.0f}", ""),
                (
                    f"… share of the time, one in {EVERY_S / 60:g} min, by that bound",
                    f"{cost.bound_s / EVERY_S:.2%}",
                    "≤ 0.5 %" if name == "pulse" else "",
                ),
                ("… trace of a host, kB", f"{trace_kb:.0f}", ""),
            ]
        print("... the files that a pulse keeps", flush=True)
        stored_mb = _stored_bytes(costs[0], Path(folder, "kept")) / MB
        rows.append((f"stored for a pulse of {HOSTS} hosts, MB", f"{stored_mb:.1f}", "≤ 20"))
    return Section(
        name="pulses",
        title="Pulses: their cost for a training",
        columns=("figure", "value", "goal"),
        rows=rows,
        notes=(
            f"{PAIRS} pairs of blocks of {STEPS} jitted steps of {STEP_S * 1000:.0f} ms in one JAX process, with one "
            f"recording and without; the client runs on the same {os.cpu_count()} cores (load average {load:.1f} at "
            f"the start), which a training in a cluster does not share with the operator. The stored bytes are scaled "
            f"from {SAMPLE} hosts: all summaries, the record, the diagnosis, and the traces that are kept."
        ),
    )


def _cost(duration_ms: int, folder: Path) -> Cost:
    done = subprocess.run(
        [sys.executable, "-m", "bench.pulse_training", str(duration_ms), str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    cost_s = json.loads(done.stdout.splitlines()[-1])
    bound_s = statistics.fmean(cost_s) + 2 * statistics.stdev(cost_s) / len(cost_s) ** 0.5
    return Cost(statistics.median(cost_s), bound_s, folder / PROFILE_DIR)


def _stored_bytes(cost: Cost, folder: Path) -> float:
    """Return what a pulse of all hosts leaves, from one of a few hosts with a recorded trace."""
    store, content = open_store(str(folder)), cost.traces[-1].read_bytes()
    hosts = [f"host-{number}" for number in range(SAMPLE)]
    for host in hosts:
        store.put(trace_key("s", host), content)
    result = diagnose_session(store, "s")
    kept = kept_hosts(result.diagnosis.findings, [each.host for each in result.summaries], hosts)
    sizes = {entry.key.rpartition("/")[2]: entry.bytes for entry in store.list(PROFILE_DIR)}
    summaries = sum(size for name, size in sizes.items() if name.endswith(SUMMARY_SUFFIX))
    record = next(cost.sessions.glob(f"*/{CAPTURE_RECORD}")).stat().st_size
    return (summaries / SAMPLE + record) * HOSTS + sizes[DIAGNOSIS_RECORD] + len(kept) * len(content)
