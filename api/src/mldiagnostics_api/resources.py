"""The custom resources by their names in the API, one value each."""

from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.names import GROUP, VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A custom resource in the version that is read and written."""

    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    group: str = GROUP
    version: str = VERSION
    categories: tuple[str, ...] = ("mldiagnostics",)

    @property
    def api_version(self) -> str:
        """Group and version, as in objects."""
        return f"{self.group}/{self.version}"

    @property
    def gvr(self) -> tuple[str, str, str]:
        """Group, version and plural, as URL paths need them."""
        return self.group, self.version, self.plural

    @property
    def definition_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


CONNECTIONS: Final = Resource(kind="MLDiagnosticsConnection", plural="mldiagnosticsconnections", short_names=("mldc",))
SCHEDULES: Final = Resource(kind="MLDiagnosticsSchedule", plural="mldiagnosticsschedules", short_names=("mlds",))
RUNS: Final = Resource(kind="MLRun", plural="mlruns", short_names=("mlr",))
