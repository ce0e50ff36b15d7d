"""Servers of XProf on virtual machines of Compute Engine, by gcloud."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError

from mldiagnostics_cli.captures.gce_tunnels import VirtualMachine, gcloud_problem, tunnels
from mldiagnostics_cli.output import note
from mldiagnostics_cli.xprof.instances import XprofInstance, free_name
from mldiagnostics_cli.xprof.manifests import PORT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


GCE: Final = "gce"
MACHINE_TYPE: Final = "c4-highmem-8"
"""The default of xprofiler: enough for sessions of about a gigabyte."""
LABEL: Final = "mldiag-xprof"
LOG_DIRECTORY: Final = "mldiag-log-directory"
"""Key of the machine's metadata: a label cannot hold a URL."""

STARTUP: Final = f"""#!/bin/bash
# Runs at each boot. XProf has no option for its address, and would be open to the whole network.
set -e
if [ ! -x /opt/xprof/bin/xprof ]; then
  apt-get -q update && apt-get -q install -y python3-venv
  python3 -m venv /opt/xprof
  /opt/xprof/bin/pip install -q 'xprof>=2.24,<3'
fi
directory=$(python3 - <<'END'
from urllib.request import Request, urlopen
url = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/{LOG_DIRECTORY}"
print(urlopen(Request(url, headers={{"Metadata-Flavor": "Google"}})).read().decode())
END
)
exec /opt/xprof/bin/python -c '
import sys
from xprof import server
server._get_wildcard_address = lambda _port: "127.0.0.1"
sys.exit(server.main(sys.argv[1:]))
' --logdir "$directory" --port {PORT}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    """A virtual machine as the user wants it.

    Args:
        log_directory: `gs://…`.
        zone: Zone of the machine.
        name: Its name; empty for one after the log directory.
        machine_type: Its type.
        service_account: Its account, which can read the bucket; None for the project's default one.
    """

    log_directory: str
    zone: str
    name: str = ""
    machine_type: str = MACHINE_TYPE
    service_account: str | None = None

    def creation(self, script: str) -> list[str]:
        """Return the command that creates it; `script` is the file of its startup script."""
        account = [] if self.service_account is None else [f"--service-account={self.service_account}"]
        return [
            *("gcloud", "compute", "instances", "create", self.name, f"--zone={self.zone}"),
            f"--machine-type={self.machine_type}",
            *("--image-family=debian-12", "--image-project=debian-cloud"),
            *("--scopes=cloud-platform", "--tags=default-allow-ssh", f"--labels={LABEL}=true"),
            f"--metadata=^::^{LOG_DIRECTORY}={self.log_directory}",  # a URL may have commas
            f"--metadata-from-file=startup-script={script}",
            *account,
            *("--format=json", "--quiet"),
        ]


def host_on_gce(spec: MachineSpec, *, another: bool) -> XprofInstance:
    """Return the server of a log directory.

    It is made if there is none or `another` one is meant.

    Raises:
        ConfigurationError: gcloud is not installed, the directory is not in a bucket, or gcloud rejects the machine.
    """
    if not spec.log_directory.startswith("gs://") or "::" in spec.log_directory:
        raise ConfigurationError(f"{spec.log_directory}: a virtual machine cannot read it; pass gs://bucket/prefix")
    known = list_on_gce([spec.zone])
    existing = [] if another else [each for each in known if each.log_directory == spec.log_directory]
    if existing:
        note(f"{spec.log_directory}: is hosted already; `mldiag xprof create --new` makes another server.")
        return existing[0]
    name = spec.name or free_name(f"xprof-{spec.log_directory.rpartition('/')[2]}", [each.name for each in known])
    with tempfile.NamedTemporaryFile("w", prefix="mldiag-startup-", suffix=".sh") as script:
        script.write(STARTUP)
        script.flush()
        try:
            made = _gcloud(replace(spec, name=name).creation(script.name), name)
        except KeyboardInterrupt:
            note(f"mldiag: {name}: may have been created; `mldiag xprof list --on gce` shows it.")
            raise
    if not made:
        raise MLDiagnosticsError(f"{name}: gcloud names no new machine; see `mldiag xprof list --on gce`")
    note(
        f"{name}: installs XProf at its first start, which takes a few minutes; its machine costs until it is deleted."
    )
    return _instance(made[0])


def list_on_gce(zones: Sequence[str] = (), filters: Sequence[str] = ()) -> list[XprofInstance]:
    """Return the servers of the project, or of some zones, that pass all filters.

    Raises `ConfigurationError`.
    """
    places = [f"--zones={','.join(zones)}"] if zones else []
    condition = " AND ".join([f"labels.{LABEL}=true", *(f"({each})" for each in filters)])
    command = ["gcloud", "compute", "instances", "list", f"--filter={condition}", *places, "--format=json"]
    return sorted(map(_instance, _gcloud(command, "gce")), key=lambda each: (each.zone, each.name))


def delete_on_gce(instances: Sequence[XprofInstance]) -> None:
    """Delete virtual machines with their disks. Raises `ConfigurationError`."""
    for each in instances:
        command = ["gcloud", "compute", "instances", "delete", each.name, f"--zone={each.zone}", "--quiet"]
        _gcloud([*command, "--format=json"], each.name)


async def forward_on_gce(instance: XprofInstance, *, port: int, opened: Callable[[int], None]) -> None:
    """Forward a local port to a server by ssh of gcloud, until cancelled.

    Args:
        instance: The server.
        port: Port of this machine; 0 for a free one.
        opened: Called with the port once it is open.

    Raises:
        ConfigurationError: gcloud is not installed.
        MLDiagnosticsError: The tunnel does not open.
    """
    machine = VirtualMachine(instance.name, instance.zone)
    async with tunnels([machine], PORT, local_ports=[port] if port else None) as [address]:
        opened(int(address.rpartition(":")[2]))
        await asyncio.Event().wait()


def _gcloud(command: Sequence[str], subject: str) -> list[Mapping[str, Any]]:
    """Run a command, and return the objects that it prints."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigurationError("gcloud: not installed here; install the Google Cloud CLI") from error
    if done.returncode:
        problem = gcloud_problem(done.stderr)
        raise MLDiagnosticsError(f"{subject}: {problem}; check the zone, the project and `gcloud auth list`")
    return list(json.loads(done.stdout or "[]"))


def _instance(machine: Mapping[str, Any]) -> XprofInstance:
    items = (machine.get("metadata") or {}).get("items") or ()
    metadata = {each["key"]: each.get("value", "") for each in items}
    return XprofInstance(
        name=str(machine["name"]),
        on=GCE,
        log_directory=str(metadata.get(LOG_DIRECTORY, "")),
        state=str(machine.get("status", "")).capitalize(),
        url="",
        created=datetime.fromisoformat(machine["creationTimestamp"]).timestamp(),
        zone=str(machine.get("zone", "")).rpartition("/")[2],
    )
