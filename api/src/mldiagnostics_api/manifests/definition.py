"""The CustomResourceDefinitions, made from the models."""

import inspect
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mldiagnostics_api.manifests.field_docs import field_docstrings
from mldiagnostics_api.manifests.structural import Schema, structural_schema
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES, Resource
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection, MLDiagnosticsSchedule, MLRunObject

Column = tuple[str, str, str, str, int]
"""Name, type, JSON path, description and priority of a printer column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A custom resource, the model of its objects, and the columns of `kubectl get`."""

    resource: Resource
    model: type[BaseModel]
    """Has fields `spec` and `status`."""
    columns: tuple[Column, ...]
    selectable_fields: tuple[str, ...] = ()
    """JSON paths that field selectors may use."""

    def manifest(self) -> dict[str, Any]:
        """Return the CustomResourceDefinition."""
        resource = self.resource
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": resource.definition_name},
            "spec": {
                "group": resource.group,
                "names": {
                    "kind": resource.kind,
                    "listKind": f"{resource.kind}List",
                    "plural": resource.plural,
                    "singular": resource.kind.lower(),
                    "shortNames": list(resource.short_names),
                    "categories": list(resource.categories),
                },
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": resource.version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": self._schema()},
                        "subresources": {"status": {}},
                        "selectableFields": [{"jsonPath": path} for path in self.selectable_fields],
                        "additionalPrinterColumns": [_column(*column) for column in self.columns],
                    }
                ],
            },
        }

    def _schema(self) -> Schema:
        """Return the schema of the object; the API server adds that of the metadata."""
        fields, docstrings, resource = self.model.model_fields, field_docstrings(self.model), self.resource
        return {
            "type": "object",
            "description": inspect.getdoc(self.model),
            "properties": {
                "apiVersion": {"type": "string", "description": f"{resource.api_version}."},
                "kind": {"type": "string", "description": f"{resource.kind}."},
                "metadata": {"type": "object"},
                **{part: _part(fields[part], docstrings[part]) for part in ("spec", "status")},
            },
            "required": ["spec"],
        }


def _part(field: FieldInfo, description: str) -> Schema:
    (model,) = (each for each in get_args(field.annotation) or (field.annotation,) if each is not type(None))
    return structural_schema(model) | {"description": description}


def _column(name: str, type_: str, path: str, description: str, priority: int) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})


_CONNECTION_COLUMNS: Final = (
    ("Status", "string", ".status.phase", "Pending, Running, Succeeded or Failed", 0),
    ("Progress", "string", ".status.progress", "Captured targets of all targets", 0),
    ("Session", "string", ".status.sessionId", "XProf session", 0),
    ("Diagnosis", "string", ".status.diagnosis.summary", "The most expensive finding", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation", 0),
    ("Failed", "integer", ".status.targets.failed", "Targets that were contacted but not captured", 1),
    ("Skipped", "integer", ".status.targets.skipped", "Targets that were not contacted", 1),
    ("Output", "string", ".status.captureResult.outputLocation", "Log directory that holds the session", 1),
    ("Message", "string", ".status.message", "Current step, or the result", 1),
)

_RUN_COLUMNS: Final = (
    ("Phase", "string", ".status.phase", "Pending, Active, Completed or Failed", 0),
    ("Attempt", "integer", ".status.attempt", "Number of the current attempt, from 0", 0),
    ("Hosts", "string", ".status.hosts.summary", "Reporting hosts of expected hosts", 0),
    ("Step", "integer", ".status.progress.step", "Newest step", 0),
    ("Step Time", "string", ".status.progress.stepTime", "Recent time of a step", 0),
    ("Goodput", "string", ".status.goodput.summary", "Productive share of the elapsed time", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation", 0),
    ("Display Name", "string", ".status.displayName", "Name of the run for people", 1),
    ("Workload", "string", ".status.workload", "Kind and name of the workload", 1),
    ("URL", "string", ".status.url", "Address of the run in the web view", 1),
    ("Message", "string", ".status.message", "Current step, or the result", 1),
)

_SCHEDULE_COLUMNS: Final = (
    ("Schedule", "string", ".status.schedule", "Times and triggers", 0),
    ("Suspend", "boolean", ".spec.suspend", "Whether no captures are made", 0),
    ("Runs", "integer", ".status.runs", "Runs that it applies to now", 0),
    ("Today", "integer", ".status.capturesLastDay", "Captures of the last 24 hours", 0),
    ("Refused", "integer", ".status.refused", "Captures that limits refused", 0),
    ("Last", "date", ".status.lastCaptureTime", "Time since the newest capture", 0),
    ("Next", "string", ".status.nextCaptureTime", "Time of the next slot", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation", 0),
    ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", "Whether it makes captures, or why not", 1),
    ("Message", "string", ".status.conditions[?(@.type=='Ready')].message", "The reason for people", 1),
)

DEFINITIONS: Final = (
    Definition(
        resource=CONNECTIONS,
        model=MLDiagnosticsConnection,
        columns=_CONNECTION_COLUMNS,
        selectable_fields=(".status.phase", ".status.diagnosis.state"),
    ),
    Definition(
        resource=RUNS,
        model=MLRunObject,
        columns=_RUN_COLUMNS,
        selectable_fields=(".status.phase", ".spec.retention.deleteArtifacts"),
    ),
    Definition(resource=SCHEDULES, model=MLDiagnosticsSchedule, columns=_SCHEDULE_COLUMNS),
)


def definition_of(resource: Resource) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a resource."""
    (definition,) = (each for each in DEFINITIONS if each.resource == resource)
    return definition.manifest()
