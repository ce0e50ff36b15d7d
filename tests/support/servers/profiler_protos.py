"""The official messages of the profiler service, from the descriptors in the installed jaxlib: an oracle for ours."""

import functools
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jaxlib
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

_FOLDER = "tsl/profiler/protobuf/"
_FILES = ("xplane", "profiler_options", "profiler_service_monitor_result", "profiler_service")
_LAST_FIELD = 12  # FileDescriptorProto.syntax, written last


@functools.cache
def message(name: str) -> Any:
    """Return the generated class of `tensorflow.<name>` or, for traces, `tensorflow.profiler.<name>`."""
    for package in ("tensorflow", "tensorflow.profiler"):
        with suppress(KeyError):
            return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{name}"))
    raise KeyError(name)


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    library = next(Path(jaxlib.__file__).parent.glob("libjax_common*"))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for name in _FILES:
            pool.Add(_descriptor(data, f"{_FOLDER}{name}.proto"))
    return pool


def _descriptor(data: mmap.mmap, name: str) -> descriptor_pb2.FileDescriptorProto:
    """Find the serialised descriptor, which begins with its own name and ends with the syntax."""
    start = re.compile(re.escape(b"\n" + bytes([len(name)]) + name.encode())).search(data)
    assert start, f"{name} is not in jaxlib"
    end = max(_ends(data, start.start()))
    return descriptor_pb2.FileDescriptorProto.FromString(data[start.start() : end])


def _ends(data: mmap.mmap, at: int) -> Iterator[int]:
    number = 0
    while number < _LAST_FIELD:
        number, kind = data[at] >> 3, data[at] & 7
        assert kind == 2, f"field {number} of a file descriptor is not length-delimited"
        length, shift, at = 0, 0, at + 1
        while data[at] & 0x80:
            length |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        at += 1 + (length | data[at] << shift)
        yield at
