"""The kind `MLRun`, version v1alpha1: one run of a workload, and its history.

The CustomResourceDefinition and its reference page are generated from these models.
"""

from functools import partial
from typing import Annotated

from pydantic import ConfigDict, Field

from mldiagnostics_api.v1alpha1.mlrun_status import MLRunStatus
from mldiagnostics_api.v1alpha1.shared import (
    INT32,
    Count,
    DaySeconds,
    LabelValue,
    Model,
    Notes,
    ObjectMeta,
    ObjectName,
    Port,
    RunId,
    Tags,
    cel_rule,
    cel_rules,
    read_object,
)


def _immutable(field: str) -> dict[str, str]:
    unchanged = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    return cel_rule(unchanged, f"{field} is immutable; create another MLRun for another run", field=f".{field}")


class RunWorkload(Model):
    """The workload of a run."""

    api_version: Annotated[str, Field(max_length=317)]
    """API version of the workload, for example `jobset.x-k8s.io/v1alpha2`."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Kind of the workload."""
    name: ObjectName
    """Name of the workload, in the namespace of the run."""
    uid: Annotated[str, Field(max_length=64)] | None = None
    """Uid of the workload; another workload of the same name is another run."""


class RunProfiling(Model):
    """Defaults of captures of this run."""

    port: Port | None = None
    """Profiler port of hosts that do not report or publish one. Default: 9999."""


class RunSignals(Model):
    """Limits beyond which a condition shows a problem of the run; 0 disables one."""

    host_silent_seconds: DaySeconds | None = None
    """Seconds without a report after which a host is silent. Default: 120."""
    straggler_ratio: Annotated[float, Field(ge=0, le=100)] | None = None
    """A host straggles if its steps take more than this many times the median of all hosts. Default: 2."""
    hang_seconds: DaySeconds | None = None
    """Seconds without a step after which the run hangs, if it is also 20 times the usual step time. Default: 900."""
    minimum_goodput_percent: Annotated[int, Field(ge=0, le=100, json_schema_extra=INT32)] | None = None
    """Goodput in per cent below which it is low, after the first half hour. Default: 0, disabled."""


class RunRetention(Model):
    """Retention of the object after the end of the run, and of the run's files."""

    ttl_seconds_after_finished: Count | None = None
    """Seconds after which the object of an ended run is deleted. Default: the operator's setting. An object with this
    field is not deleted because of the limit on the number of ended runs."""
    delete_artifacts: bool | None = None
    """Whether the deletion of the object also deletes the run's files: its directories in `storageLocation` and in the
    operator's default storage, if their records name this run and namespace. Files of a run that goes on are kept. The
    result is an event. Default: false, the files are kept."""


class MLRunSpec(Model):
    """Identity and settings of the run; `workloadRef` and `runId` are immutable."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            _immutable("runId"),
            _immutable("workloadRef"),
            cel_rule(
                "!has(self.workloadRef) || has(self.runId)",
                "runId is required with workloadRef; the operator creates the run of an opted-in workload itself",
                field=".runId",
            ),
            cel_rule(
                "!has(self.storageLocation) || !self.storageLocation.matches('(^|/)[.][.](/|$)')",
                "storageLocation must not contain '..'",
                field=".storageLocation",
            ),
        )
    )

    run_id: RunId | None = None
    """Id of the run, the same in the SDK and in file names. Immutable."""
    workload_ref: RunWorkload | None = None
    """Workload of the run; absent for a run outside the cluster. Immutable."""
    display_name: Annotated[str, Field(max_length=253)] | None = None
    """Name of the run for people. Default: the name that the program reports, else that of the workload."""
    tags: Tags | None = None
    """Words to find the run by, in place of those that the program reports; at most 32."""
    notes: Notes | None = None
    """Remarks about the run for people, in place of those that the program reports."""
    run_group: LabelValue | None = None
    """Group of runs, also the label `diagon.gke.io/run-group`. Default: the CronJob or RayCronJob of the workload."""
    storage_location: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Root of the run's files and default of its captures: `gs://bucket/path`, `s3://bucket/path`, `az://container/path`
    or `volume:///namespace/path`. The same locations are allowed as for captures."""
    profiling: RunProfiling | None = None
    """Defaults of captures of this run."""
    signals: RunSignals | None = None
    """Limits beyond which a condition says that the run needs attention."""
    retention: RunRetention | None = None
    """Retention of the object after the end of the run, and of the run's files."""


class MLRunObject(Model):
    """One run of a machine-learning workload, with its hosts, progress and goodput.

    The operator creates it for every workload that is opted in. It outlives the workload.
    """

    metadata: ObjectMeta
    spec: MLRunSpec
    """Identity and settings of the run; `workloadRef` and `runId` are immutable."""
    status: MLRunStatus | None = None
    """Phase, progress and result of the run."""


read_run = partial(read_object, MLRunObject)
"""Parses an object as the API returns it; see `read_object`."""
