"""Measures one client of a bucket in its own process: `store_clients.py CLIENT URL WHAT COUNT BYTES` prints JSON.

It runs with the interpreter of the client's environment, so it only imports that client.
"""

import http.client
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

MIB = 1024 * 1024
RANGE_BYTES = 64 * 1024


class Client(NamedTuple):
    """The measured calls of a client."""

    put: Callable[[str, bytes], Any]
    """Creates an object."""
    count: Callable[[str], int]
    """Counts the objects below a prefix."""
    ranges: Callable[[str, list[int]], list[bytes]]
    """Reads the first byte of a range of `RANGE_BYTES` at each offset of an object."""
    whole: Callable[[str], bytes]
    """Reads an object."""


def main(client: str, url: str, what: str, *, count: int, size: int) -> None:
    """Print seconds, processor seconds and MiB of one measure."""
    put, listed, ranges, whole = CLIENTS[client](url)
    folder, data = f"{client}-{what}-{uuid.uuid4()}", os.urandom(size)
    put(f"{folder}-warm-up", b"x")
    if what == "list":
        listed("objects/")  # the first list reads the disk
    before, cpu, start = peak_mib(), time.process_time(), time.perf_counter()
    if what == "list":
        assert listed("objects/") == count
    elif what == "ranges":
        offsets = [(4 + at * 7 % 11) * MIB for at in range(count)]  # far apart: no client has read them already
        assert len(ranges("larger", offsets)) == count
    elif what == "whole":
        for _ in range(count):
            assert len(whole("large")) == 2 * MIB
    else:
        for number in range(count):
            put(f"{folder}/{number:06}", data)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"s": seconds, "cpu_s": cpu_seconds, "mib": peak_mib() - before}))


def peak_mib() -> float:
    """Return the largest resident memory so far."""
    [kib] = re.findall(r"VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text())
    return int(kib) / 1024


def mldiagnostics(url: str) -> Client:
    from mldiagnostics.store import open_store

    store = open_store(url)

    def ranges(key: str, offsets: list[int]) -> list[bytes]:
        first = []
        with store.open(key) as file:
            for offset in offsets:
                file.seek(offset)
                first.append(file.read(1))
        return first

    def whole(key: str) -> bytes:
        with store.open(key) as file:
            return file.read()

    return Client(store.put, lambda prefix: sum(1 for _ in store.list(prefix)), ranges, whole)


def floor(url: str) -> Client:
    """Return plain HTTP: the S3 bucket is open to all, azurite takes a signature in the query."""
    scheme, _, rest = url.partition("://")
    if scheme == "s3":
        base, token, name = urlsplit(os.environ["AWS_ENDPOINT_URL"]), "", "Key"
        pages, next_page = "list-type=2&prefix=", (r"<NextContinuationToken>([^<]+)<", "continuation-token")
    else:
        base, token, name = urlsplit(os.environ["AZURE_STORAGE_ENDPOINT"]), os.environ["BENCH_SAS"] + "&", "Name"
        pages, next_page = "restype=container&comp=list&prefix=", (r"<NextMarker>([^<]+)<", "marker")
    connection = http.client.HTTPConnection(base.netloc)
    path = f"{base.path}/{rest}"
    always = {"x-ms-version": "2021-08-06"} if token else dict[str, str]()
    of_put = always | {"If-None-Match": "*", "x-ms-blob-type": "BlockBlob"}

    def request(method: str, target: str, body: bytes | None = None, **more: str) -> http.client.HTTPResponse:
        connection.request(method, target, body, of_put if method == "PUT" else always | more)
        response = connection.getresponse()
        assert response.status in {200, 201, 206}, response.read()
        return response

    def listed(prefix: str) -> int:
        count, more = 0, ""
        while True:
            body = request("GET", f"{path}?{token}{pages}{quote(prefix, safe='')}{more}").read().decode()
            count += body.count(f"<{name}>")
            if not (found := re.search(next_page[0], body)):
                return count
            more = f"&{next_page[1]}={quote(found[1], safe='')}"

    def put(key: str, data: bytes) -> None:
        request("PUT", f"{path}/{key}?{token}", data).read()

    def ranges(key: str, offsets: list[int]) -> list[bytes]:
        first = []
        for offset in offsets:
            response = request("GET", f"{path}/{key}?{token}", Range=f"bytes={offset}-{offset + RANGE_BYTES - 1}")
            first.append(response.read(1))
            response.read()
        return first

    return Client(put, listed, ranges, lambda key: request("GET", f"{path}/{key}?{token}").read())


def boto3(url: str) -> Client:
    import boto3 as package

    bucket, client = url.partition("://")[2], package.client("s3")

    def listed(prefix: str) -> int:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sum(len(page.get("Contents", ())) for page in pages)

    def ranges(key: str, offsets: list[int]) -> list[bytes]:
        first = []
        for offset in offsets:
            wanted = f"bytes={offset}-{offset + RANGE_BYTES - 1}"
            body = client.get_object(Bucket=bucket, Key=key, Range=wanted)["Body"]
            first.append(body.read(1))
            body.read()
        return first

    return Client(
        lambda key, data: client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*"),
        listed,
        ranges,
        lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read(),
    )


def azure_storage_blob(url: str) -> Client:
    from azure.storage.blob import ContainerClient

    endpoint, key = os.environ["AZURE_STORAGE_ENDPOINT"], os.environ["AZURE_STORAGE_ACCOUNT_KEY"]
    account = {"account_name": os.environ["AZURE_STORAGE_ACCOUNT_NAME"], "account_key": key}
    client = ContainerClient(endpoint, url.partition("://")[2], credential=account)
    return Client(
        lambda key, data: client.upload_blob(key, data, overwrite=False),
        lambda prefix: sum(1 for _ in client.list_blobs(name_starts_with=prefix)),
        lambda key, offsets: [client.download_blob(key, each, RANGE_BYTES).readall()[:1] for each in offsets],
        lambda key: client.download_blob(key).readall(),
    )


CLIENTS = {"mldiagnostics": mldiagnostics, "floor": floor, "boto3": boto3, "azure-storage-blob": azure_storage_blob}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], count=int(sys.argv[4]), size=int(sys.argv[5]))
