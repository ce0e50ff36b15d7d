"""Custom resources by their names in the API: one value each, which paths, objects and definitions are written from."""

from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.names import GROUP, VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind that the API server stores, in the version that is read and written."""

    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    group: str = GROUP
    version: str = VERSION
    categories: tuple[str, ...] = ("mldiagnostics",)

    @property
    def api_version(self) -> str:
        """Group and version as objects have them."""
        return f"{self.group}/{self.version}"

    @property
    def gvr(self) -> tuple[str, str, str]:
        """Group, version and plural, as paths are written from."""
        return self.group, self.version, self.plural

    @property
    def definition_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


CONNECTIONS: Final = Resource(kind="MLDiagnosticsConnection", plural="mldiagnosticsconnections", short_names=("mldc",))
