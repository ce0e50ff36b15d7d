"""Programs in the pods of an installation: chart values in, what the program leaves behind out; nothing is made up."""

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
from mldiagnostics_api.owners import owner_chain
from mldiagnostics_webhook import config
from release.parts import WEBHOOK
from release.render import Object, rendered
from support.charts import pod_template
from support.kubelet import environment_of
from support.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.pipeline.records import Record
    from support import builders as a

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
}}))
"""


@dataclass(frozen=True)
class Pod:
    """A pod that the webhook has changed, and the environment of its container."""

    object: Object
    environment: Mapping[str, str]


def injected(values: Object, world: a.World, index: int = -1, *, annotations: Mapping[str, str] | None = None) -> Pod:
    """Return a pod of the world as it starts in a cluster where the webhook's chart is installed with `values`."""
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
class Left:
    """What the program of a pod has left."""

    pod: Pod
    folder: Path
    out: str
    err: str

    @cached_property
    def told(self) -> dict[str, Any]:
        """What the program says of its run."""
        said: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return said

    @property
    def storage(self) -> str:
        return str(Path(self.told["directory"]).parent)

    @cached_property
    def records(self) -> list[Record]:
        return list(read_records(self.storage, self.told["run_id"]))

    @property
    def process(self) -> Mapping[str, Any]:
        """What the records say of the process, from its first phase on."""
        return next(record.payload or {} for record in self.records if record.kind == "phase")

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((Path(self.told["directory"]) / "run.json").read_text())
        return document

    @property
    def notes(self) -> list[str]:
        """What the program was told on standard error, but for the line that says where its run is."""
        return [line for line in self.err.splitlines() if not line.startswith("mldiagnostics: run 'job' began: ")]


def run_in(
    pod: Pod,
    folder: Path,
    *,
    without: tuple[str, ...] = (),
    prepare: str = "",
    arguments: str = "",
    while_it_runs: str = "",
) -> Left:
    """Run the program in the pod's environment, `without` some of its variables."""
    programs = Programs(folder)
    source = PROGRAM.format(prepare=prepare, arguments=arguments, while_it_runs=while_it_runs)
    environment = {name: value for name, value in pod.environment.items() if name not in without}
    ended = programs.run(source, env=environment)
    assert ended.code == 0, ended.err
    return Left(pod, folder, ended.out, ended.err)
