"""One process that serves the control-plane API: `python -m bench.control_plane_server FOLDER`.

It prints its port, and after the end of its input the number of look-ups at the API server.
"""

import asyncio
import os
import sys
from pathlib import Path

import uvloop
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics


async def serve(folder: Path) -> None:
    """Serve until the input ends."""
    certificate = ServingCertificate(utc_now)
    names = ("pki/apiserver.crt", "pki/apiserver.key")
    certificate.load(*[await asyncio.to_thread((folder / name).read_bytes) for name in names])
    config = OperatorConfig(
        cluster_name="bench",
        control_plane_port=0,
        volume_root=folder / "volume",
        policy=Policy(default_storage=Location.parse("volume:///runs")),
    )
    cluster, telemetry = await ApiClient.connect(os.environ), OperatorMetrics()
    plane = ControlPlane(cluster, config, telemetry, ReportTable(), certificate, storage=Storage(config.volume_root))
    work = asyncio.create_task(plane.run())
    print(await plane.port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    lookups = telemetry.registry.get_sample_value("mldiagnostics_control_plane_lookups_total", {"kind": "tokenreview"})
    print(lookups or 0, flush=True)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await cluster.aclose()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
