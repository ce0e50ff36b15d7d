"""Requests to buckets of S3 and Azure, beside the official clients and plain HTTP to the same server.

The clients are in `bench.store_clients`.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.programs.environments import interpreter
from support.servers.object_servers import ObjectServer, running_azurite, running_minio, shared_access_signature

from bench.table import Section

ROOT = Path(__file__).parents[1]
SCALE = float(os.environ.get("STORE_SCALE", "1"))
"""Of the numbers of objects: all of them take half an hour."""
KIB, MIB = 1024, 1024 * 1024
MEASURES = (
    ("small", "{} puts of 1 KiB", 10_000, KIB),
    ("parts", "{} puts of 2 MiB", 1000, 2 * MIB),
    ("list", "list of {} objects", 100_000, 1),
    ("ranges", "first bytes of {} ranges of 64 KiB", 1000, 1),
    ("whole", "{} reads of 2 MiB", 500, 1),
)
OFFICIAL = {"s3": ("boto3", "moto"), "az": ("azure-storage-blob", "azure-blobs")}
"""The official client of a scheme and its environment."""

_FOR_EVERYBODY = """
import boto3, json, sys
url, bucket = sys.argv[1:]
statement = {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:*"]}
statement["Resource"] = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
boto3.client("s3", endpoint_url=url).put_bucket_policy(Bucket=bucket, Policy=policy)
"""
"""The floor signs nothing."""

Figures = dict[str, float]


def measure() -> Section:
    """Run each measure of each client in a process of its own."""
    load = os.getloadavg()[0]
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder, running_minio(Path(folder)) as s3, running_azurite() as azure:
        for server in (s3, azure):
            rows.extend(_rows(server))
    return Section(
        name="store",
        title="Buckets of S3 and Azure",
        columns=("what", "mldiagnostics", "official client", "floor: plain HTTP", "time / floor", "CPU / official"),
        rows=rows,
        notes=(
            f"Seconds (processor seconds of the client's process, growth of its peak memory) of one process each, one "
            f"request after another, on {os.cpu_count()} cores ({platform.machine()}, load average {load:.1f} at the "
            "start), which the servers share: MinIO 2026-02-12 for `s3://`, azurite 3.37.0 for `az://`. All create "
            "objects on the condition that they do not exist. Official clients are boto3 and azure-storage-blob. "
            "Each list is the second one of its process. Ranges are read whole, as a connection that is left is lost. "
            f"Numbers of objects are scaled by {SCALE:g} (`STORE_SCALE`). Goals: ≤ 1.5 times the floor, half the CPU "
            "of the official client, ≤ 64 MiB."
        ),
    )


def _rows(server: ObjectServer) -> list[tuple[str, ...]]:
    bucket = "bench-store"
    server.make_bucket(bucket)
    sas = shared_access_signature(bucket, "racwdl", datetime.now(UTC) + timedelta(days=1))
    environment = os.environ | server.environment() | {"BENCH_SAS": sas}
    url = f"{server.scheme}://{bucket}"
    official, home = OFFICIAL[server.scheme]
    clients = {"mldiagnostics": sys.executable, official: str(interpreter(home)), "floor": sys.executable}
    if server.scheme == "s3":
        _run([str(interpreter("moto")), "-c", _FOR_EVERYBODY, server.url, bucket], environment)
    print(f"... objects of {server.scheme}://", flush=True)
    _fill(environment, url, max(int(MEASURES[2][2] * SCALE), 1))
    rows = []
    for name, label, count, size in MEASURES:
        number = max(int(count * SCALE), 1)
        print(f"... {server.scheme}://: {label.format(number)}", flush=True)
        figures: dict[str, Figures] = {}
        for client, python in clients.items():
            command = [python, "bench/store_clients.py", client, url, name, str(number), str(size)]
            figures[client] = json.loads(_run(command, environment))
        ours, theirs, floor = figures.values()
        cells = (f"{each['s']:.2f} ({each['cpu_s']:.2f}, {each['mib']:.0f} MiB)" for each in (ours, theirs, floor))
        ratios = (f"{ours['s'] / floor['s']:.2f}", f"{ours['cpu_s'] / theirs['cpu_s']:.2f}")
        rows.append((f"`{server.scheme}://`: {label.format(number)}", *cells, *ratios))
    return rows


def _fill(environment: dict[str, str], url: str, count: int) -> None:
    program = (
        "import sys; from bench.store_clients import floor; put, *_ = floor(sys.argv[1]); put('large', b'x' * 2**21)\n"
        "put('larger', b'x' * 2**24)\n"
        "for number in range(int(sys.argv[2])): put(f'objects/{number:06}', b'x')"
    )
    _run([sys.executable, "-c", program, url, str(count)], environment | {"PYTHONPATH": str(ROOT)})


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1] if done.stdout else ""
