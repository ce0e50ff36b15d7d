"""Meaning of the event names of frameworks and compilers. Pure.

Names that programs give have no meaning.

Sources: traces of jaxlib 0.4 to 0.10 on CPU, of 0.11 on H100, of a TPU v6e and of MI300, XProf's `xplane_schema.cc`,
XLA's opcodes, NCCL's kernels, Kineto.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mldiagnostics_diagnosis.phases import Phase


Role = Literal[
    "step", "input", "callback", "compilation", "collection", "checkpoint", "to device", "from device", "dispatch",
    "wait", "operation", "annotation", "internal",
]  # fmt: skip
"""Kinds of events of a host's thread; the program itself names an `annotation`."""

_COLLECTIVE = re.compile(
    r"(?:^|[ /:%_])(?:(?:ragged-)?all-(?:reduce|gather|to-all)|reduce-scatter|collective-(?:permute|broadcast)"
    r"|(?:send|recv)(?:-done)?\.\d)|^(?:send|recv)(?:-done)?$"
    r"|^nccl|^c10d::|^gloo:|^ucc:|^mpi:|^rccl",
    re.IGNORECASE,
)
_CALLBACK = re.compile(
    r"^(?:pure_callback|io_callback|debug_(?:callback|print)|outside_call)(?:\.|$)"
    r"|(?:xla_ffi_|xla_)(?:partitioned_)?python_(?:cpu|gpu)_callback|^(?:host_callback|infeed|outfeed)(?:[.-]|$)"
)
_COPY = re.compile(
    r"^(?:memcpy ?(?:H2D|D2H|HtoD|DtoH)|Copy(?:HostToDevice|DeviceToHost)|__amd_rocclr_copy)", re.IGNORECASE
)
"""Copies between host and device; a copy within a device, such as `MemcpyD2D` or `copy-done`, is computation."""
_LOOP = re.compile(r"^(?:while|conditional|call)(?:\.\d+)?$|^autograd::|Backward\d+$")

_ROLES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("step", re.compile(r"^(?:ProfilerStep#\d+|Optimizer\.step#)")),
    ("collection", re.compile(r"^gc(?:$|[ :.])")),
    ("callback", _CALLBACK),
    (
        "compilation",
        re.compile(
            r"^(?:backend_compile|lower_sharding_computation|lower_jaxpr|trace_to_jaxpr|XlaCompile|CompileAndLoad)"
            r"|^PyClient::Compile|Client::Compile|Compiler::Compile|^TorchDynamo|^(?:compile_fx|_compile\.)"
        ),
    ),
    (
        "input",
        re.compile(
            r"^(?:Iterator::|IteratorGetNext|enumerate\(DataLoader\)#|PrefetchedMapDataset)"
            r"|DataLoaderIter\.__next__"
        ),
    ),
    ("checkpoint", re.compile(r"^(?:orbax|ocp)[./: ]|^(?:CheckpointManager|AsyncCheckpointer)[.:]")),
    (
        "from device",
        re.compile(
            r"^np\.asarray\(jax\.Array\)|^ArrayImpl\.(?:copy_to_host_async|_value)"
            r"|CopyToHost|ToLiteral|D2H Dispatch"
        ),
    ),
    (
        "to device",
        re.compile(
            r"^(?:DevicePut|BatchedDevicePut|batched_copy_array_to_devices|BufferFromHost|TransferToDevice)"
            r"|^(?:H2D Dispatch|LinearizeInto)"
        ),
    ),
    (
        "dispatch",
        re.compile(
            r"^(?:PjitFunction\(|ExecuteReplicated|ExecuteSharded|XlaLaunch)|Executable::Execute|^Tpu\w*Execute"
            r"|^(?:cu|cuda|hip)\w*Launch\w*Kernel"
        ),
    ),
    ("wait", re.compile(r"(?:::Await|BlockHostUntilReady|block_until_ready|(?:Stream|Device|Event)Synchronize)")),
    (
        "operation",
        re.compile(r"^(?:aten|torchvision|torch|c10d)::|^(?:gloo|nccl|ucc|mpi):|^autograd::|^\w+Backward\d+$"),
    ),
    (
        "internal",
        re.compile(
            r"^(?:end: |\$|cpp_pjit|ParseArguments|Wait for |Handle input|Allocate|shard_args|ThunkExecutor|Threadpool)"
            r"|^(?:BatchedCopyTo|ProcessMessages)|^[A-Z]\w*(?:::[\w<>~]+)+"
        ),
    ),
)


def host_role(name: str) -> Role:
    """Return the kind of an event of a host's thread.

    >>> host_role("PjitFunction(update)"), host_role("any name of a program")
    ('dispatch', 'annotation')
    """
    return next((role for role, pattern in _ROLES if pattern.search(name)), "annotation")


def operation_phase(name: str, category: str = "") -> Phase:
    """Return the phase of an operation of a device.

    Args:
        name: Its name, such as `all-reduce.3`.
        category: Its category, if the trace has one, such as `convolution fusion`.

    >>> operation_phase("all-reduce.3"), operation_phase("fusion.12", "all-gather fusion")
    ('collective', 'collective')
    >>> operation_phase("MemcpyH2D"), operation_phase("Memcpy HtoD (Pinned -> Device)"), operation_phase("MemcpyD2D")
    ('transfer', 'transfer', 'compute')
    """
    if _CALLBACK.search(name):
        return "callback"
    if _COLLECTIVE.search(name) or _COLLECTIVE.search(category):
        return "collective"
    return "transfer" if _COPY.search(name) else "compute"


def is_loop(name: str) -> bool:
    """Return whether an operation only contains others, whose time is counted."""
    return _LOOP.search(name) is not None
