"""The CustomResourceDefinitions, made from the models."""

from typing import Any, Final

from mldiagnostics_api import names
from mldiagnostics_api.structural import Schema, structural_schema
from mldiagnostics_api.v1alpha1 import ConnectionSpec, ConnectionStatus, MLDiagnosticsConnection

_COLUMNS: Final = (
    ("Status", "string", ".status.phase", "Pending, Running, Succeeded or Failed", 0),
    ("Progress", "string", ".status.progress", "Captured and all targets", 0),
    ("Session", "string", ".status.sessionId", "XProf session", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation", 0),
    ("Failed", "integer", ".status.targets.failed", "Targets that were dialled in vain", 1),
    ("Skipped", "integer", ".status.targets.skipped", "Targets that were not dialled", 1),
    ("Output", "string", ".status.captureResult.outputLocation", "Log directory that holds the session", 1),
    ("Message", "string", ".status.message", "What happens now, or how it ended", 1),
)


def connection_definition() -> dict[str, Any]:
    """Write the CustomResourceDefinition of `MLDiagnosticsConnection`."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.CONNECTION_PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": names.CONNECTION_KIND,
                "listKind": f"{names.CONNECTION_KIND}List",
                "plural": names.CONNECTION_PLURAL,
                "singular": names.CONNECTION_SINGULAR,
                "shortNames": list(names.CONNECTION_SHORT_NAMES),
                "categories": list(names.CATEGORIES),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _object_schema()},
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": ".status.phase"}],
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                }
            ],
        },
    }


def _object_schema() -> Schema:
    """Write the schema of the whole object; the API server itself knows its metadata."""
    fields = MLDiagnosticsConnection.model_fields
    return {
        "type": "object",
        "description": MLDiagnosticsConnection.__doc__,
        "properties": {
            "apiVersion": {"type": "string", "description": f"{names.API_VERSION}."},
            "kind": {"type": "string", "description": f"{names.CONNECTION_KIND}."},
            "metadata": {"type": "object"},
            "spec": structural_schema(ConnectionSpec) | {"description": fields["spec"].description},
            "status": structural_schema(ConnectionStatus) | {"description": fields["status"].description},
        },
        "required": ["spec"],
    }


def _column(name: str, type_: str, path: str, description: str, priority: int) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})
