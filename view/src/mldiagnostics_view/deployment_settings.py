"""Settings of the server in a cluster, from environment variables."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_kube.installation.policy_file import read_policy
from mldiagnostics_kube.process import settings
from mldiagnostics_kube.process.settings import LogLevel, Setting, SettingsReader

from mldiagnostics_view.settings import VIEW_PORT

_HEADER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


def _header(raw: str) -> str:
    if not _HEADER.fullmatch(raw):
        raise ValueError("is not the name of a header; write it like X-Forwarded-User")
    return raw


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentConfig:
    """Settings of the server; each field names its environment variable."""

    watch_namespaces: Annotated[
        tuple[str, ...],
        Setting(
            "MLDIAG_WATCH_NAMESPACES",
            "Comma-separated namespaces whose runs are shown. Empty: all.",
            settings.dns_names,
        ),
    ] = ()
    hosts: Annotated[
        tuple[str, ...],
        Setting("MLDIAG_VIEW_HOSTS", "Comma-separated names in the URLs of browsers and probes.", settings.dns_names),
    ] = ()
    port: Annotated[int, Setting("MLDIAG_VIEW_PORT", "Port of the page; 0 lets the system choose.", settings.port)] = (
        VIEW_PORT
    )
    http_port: Annotated[
        int,
        Setting("MLDIAG_HTTP_PORT", "Port of `/healthz` and `/readyz`; 0 lets the system choose.", settings.port),
    ] = 8081
    policy: Annotated[
        Policy,
        Setting(
            "MLDIAG_POLICY_FILE",
            "JSON file with the operator's limits; files are read only in storage that it allows. Empty: the built-in "
            "limits.",
            read_policy,
        ),
    ] = field(default_factory=Policy)
    volume_root: Annotated[
        Path | None,
        Setting(
            "MLDIAG_VOLUME_ROOT",
            "Directory where the operator's volume is mounted. Empty: its files are not shown.",
            settings.absolute_path,
        ),
    ] = None
    user_header: Annotated[
        str,
        Setting(
            "MLDIAG_VIEW_USER_HEADER",
            "Header in which the authenticating proxy names the user. Empty: without a proxy, on the loopback address.",
            _header,
        ),
    ] = ""
    groups_header: Annotated[
        str,
        Setting("MLDIAG_VIEW_GROUPS_HEADER", "Header with the groups, separated by commas. Empty: none.", _header),
    ] = ""
    secret_header: Annotated[
        str, Setting("MLDIAG_VIEW_SECRET_HEADER", "Header in which the proxy sends the shared secret.", _header)
    ] = "X-Mldiag-Proxy-Secret"  # noqa: S105 - its name, not its content
    secret_file: Annotated[
        Path | None,
        Setting(
            "MLDIAG_VIEW_SECRET_FILE",
            "File with the shared secret, one per line. Required with MLDIAG_VIEW_USER_HEADER.",
            settings.absolute_path,
        ),
    ] = None
    captures: Annotated[
        bool,
        Setting(
            "MLDIAG_VIEW_CAPTURES",
            "`true` lets viewers start captures where they may create MLDiagnosticsConnections. Needs a proxy.",
            settings.switch,
        ),
    ] = False
    xprof_url: Annotated[
        str,
        Setting(
            "MLDIAG_VIEW_XPROF_URL",
            "Address of XProf in another container of the pod. Empty: sessions cannot be opened from the page.",
            settings.web_url,
        ),
    ] = ""
    xprof_cache: Annotated[
        Path | None,
        Setting(
            "MLDIAG_VIEW_XPROF_CACHE",
            "Directory for the sessions that XProf reads, at the same path in both containers. Required with "
            "MLDIAG_VIEW_XPROF_URL.",
            settings.absolute_path,
        ),
    ] = None
    xprof_cache_gib: Annotated[
        int, Setting("MLDIAG_VIEW_XPROF_CACHE_GIB", "Most GiB of that directory.", settings.whole_number)
    ] = 8
    log_level: LogLevel = "INFO"


def _conflicts(config: DeploymentConfig) -> list[str]:
    pairs = {
        "MLDIAG_VIEW_USER_HEADER and MLDIAG_VIEW_SECRET_FILE": (config.user_header, config.secret_file),
        "MLDIAG_VIEW_XPROF_URL and MLDIAG_VIEW_XPROF_CACHE": (config.xprof_url, config.xprof_cache),
    }
    return [f"{names}: one is set without the other; set both" for names, (a, b) in pairs.items() if bool(a) != bool(b)]


_READER: Final = SettingsReader(
    DeploymentConfig,
    title="Environment of the web view",
    module="mldiagnostics_view.deployment_settings",
    invalid="The settings of the view are not valid",
    conflicts=_conflicts,
)
load, reference = _READER.load, _READER.reference

if __name__ == "__main__":
    sys.stdout.write(reference())
