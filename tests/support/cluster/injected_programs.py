"""Programs in injected pods: from chart values to the results of a real program."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
from mldiagnostics.runs import read_records
from mldiagnostics_api.injection import Injection, controller_of, decide, patch
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.owners import owner_chain
from mldiagnostics_webhook import config
from release.parts import WEBHOOK
from release.render import Object, rendered
from support.cluster.charts import pod_template
from support.cluster.kubelet import environment_of
from support.programs.processes import Programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.pipeline.records import Record
    from support.cluster import builders as a

NOW = dt.datetime(2026, 4, 24, 3, 5, 0, tzinfo=dt.UTC)

PROGRAM = """
import json
from mldiagnostics import diagnostics, machinelearning_run, metrics
{prepare}
run = machinelearning_run("job", log_system_metrics=False{arguments})
metrics.record("loss", 0.5, step=7, record_on_all_hosts=True)
{while_it_runs}
run.close()
print(json.dumps({{
    "run_id": run.run_id, "namespace": run.namespace, "workload": dict(run.workload_details),
    "directory": run.directory, "rank": run.origin.rank, "complaints": diagnostics.counts(),
    "cluster_id": run.cluster_id,
}}))
"""


@dataclass(frozen=True)
class Pod:
    """Pod after injection, and the environment of its container."""

    object: Object
    environment: Mapping[str, str]


def injected(values: Object, world: a.World, index: int = -1, *, annotations: Mapping[str, str] | None = None) -> Pod:
    """Return a pod of the world after injection by the webhook installed with `values`."""
    installed = pod_template(rendered(WEBHOOK, values), WEBHOOK)
    installed["metadata"] |= {"name": "webhook-0", "namespace": "gke-mldiagnostics"}
    settings = config.load(environment_of(installed, "webhook"))
    pod = world.pods[index]
    pod["metadata"]["annotations"] = dict(annotations or {})
    pod["spec"]["serviceAccountName"] = "default"
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={OPT_IN_LABEL: "true"},
        namespace_annotations={},
        owners=owner_chain(controller_of(pod, "ml"), world.owners().get, pods=False),
        settings=settings.injected(settings.cluster_name),
        now=NOW,
    )
    assert isinstance(decision, Injection), decision
    changed = jsonpatch.apply_patch(pod, patch(pod, decision))
    return Pod(changed, environment_of(changed, "train"))


@dataclass(frozen=True)
class ProgramResult:
    """Results of the program of a pod."""

    pod: Pod
    folder: Path
    out: str
    err: str
    reports: Sequence[Mapping[str, Any]] = ()
    """Reports to a control plane."""

    @cached_property
    def reported(self) -> dict[str, Any]:
        """Run, rank and diagnostics that the program printed."""
        report: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return report

    @property
    def storage(self) -> str:
        """Root directory of the run's files."""
        return str(Path(self.reported["directory"]).parent)

    @cached_property
    def records(self) -> list[Record]:
        """Records of the run."""
        return list(read_records(self.storage, self.reported["run_id"]))

    @property
    def process(self) -> Mapping[str, Any]:
        """Description of the process, from the first record of its phase."""
        return next(record.payload or {} for record in self.records if record.kind == "phase")

    @property
    def document(self) -> dict[str, Any]:
        """Content of run.json."""
        document: dict[str, Any] = json.loads((Path(self.reported["directory"]) / "run.json").read_text())
        return document

    @property
    def notes(self) -> list[str]:
        """Lines on standard error, without the line about the start of the run."""
        return [line for line in self.err.splitlines() if not line.startswith("mldiagnostics: run 'job' began: ")]


def run_in(
    pod: Pod,
    folder: Path,
    *,
    without: tuple[str, ...] = (),
    prepare: str = "",
    arguments: str = "",
    while_it_runs: str = "",
    env: Mapping[str, str] | None = None,
) -> ProgramResult:
    """Run the program with the pod's environment, except the variables in `without`, and with those in `env`."""
    programs = Programs(folder)
    source = PROGRAM.format(prepare=prepare, arguments=arguments, while_it_runs=while_it_runs)
    environment = {name: value for name, value in pod.environment.items() if name not in without}
    process = programs.run(source, env=environment | dict(env or {}))
    assert process.code == 0, process.err
    return ProgramResult(pod, folder, process.out, process.err)
