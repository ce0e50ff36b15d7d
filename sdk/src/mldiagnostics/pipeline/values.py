"""Values of records: accepted types, and the time at which they are read.

Immutable values are kept by reference and read in the drain; mutable ones are copied by the caller, since an update in
place must not change earlier records. A JAX array is immutable but may be donated or deleted before it is read, which
is detected then. A CUDA tensor is cloned on its device, without waiting for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.pipeline.deferred_value import DeferredValue, is_jax_ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mldiagnostics.pipeline.drops import Reason
    from mldiagnostics.pipeline.records import Value

MAX_VALUE_BYTES = 4096
"""Maximum bytes of a value and its labels together."""

LARGEST_WHOLE = 2**63 - 1
"""Largest whole number that every reader of records accepts."""

_NUMBER_BYTES = 8
_MAX_DEPTH = 32
_MAX_FOREIGN_TEXT = 256
_NO_NUMBERS = frozenset("USOMmc")  # numpy's codes of strings, objects, dates and complex numbers
_PLAIN = frozenset({float, int, bool})


class Unrecordable(Exception):
    """The object is not a valid value; `reason` is a reason of drops."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


Kept: TypeAlias = "float | tuple[float | DeferredValue, ...] | DeferredValue | str | dict[str, object]"
"""Immutable result of `keep`; strings and dicts become events instead of values."""


def keep(value: Any, *, max_bytes: int = MAX_VALUE_BYTES) -> tuple[Kept, int]:
    """Return an immutable form of `value`, and its approximate extra bytes.

    Raises:
        Unrecordable: the value is of another type or too large. Foreign objects may raise other errors.
    """
    kind = type(value)
    if kind in _PLAIN:
        return float(value), 0
    if isinstance(value, str):
        return keep_text(value, max_bytes), len(value)
    if isinstance(value, Mapping):
        budget = _ByteAllowance(max_bytes)
        return _keep_mapping(value, budget, 0), max_bytes - budget.left
    if isinstance(value, list | tuple):
        return _keep_series(value, max_bytes), len(value) * _NUMBER_BYTES
    keeper = _KEEPERS.get(kind.__module__.partition(".")[0])
    if keeper is None:
        keeper = _keep_tensor if _is_tensor(value) else _keep_number
    kept = keeper(value)
    return kept, len(kept) * _NUMBER_BYTES if isinstance(kept, tuple) else _NUMBER_BYTES


def keep_text(text: str, max_bytes: int = MAX_VALUE_BYTES) -> str:
    """Return the string as valid Unicode; raise `Unrecordable` if it is too long."""
    if len(text) > max_bytes:
        raise Unrecordable("too-large", f"a string of {len(text)} characters")
    if text.isascii():
        return text if type(text) is str else str.__str__(text)
    return text.encode("utf-8", "replace").decode()


def settle(kept: Kept) -> Value:
    """Return the number or series.

    Raise `Unrecordable`, or errors of the framework for unreadable arrays.
    """
    if type(kept) is float:
        return kept
    if isinstance(kept, DeferredValue):
        return kept.read()
    if isinstance(kept, tuple):
        return tuple(_settle_one(element) for element in kept)
    raise Unrecordable("bad-value", f"{type(kept).__name__} is not a number")


def _settle_one(element: float | DeferredValue) -> float:
    number = element.read() if isinstance(element, DeferredValue) else element
    if isinstance(number, float):
        return number
    raise Unrecordable("bad-value", "a list must have numbers only, one per device")


class _ByteAllowance:
    """Remaining bytes of a nested value."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Unrecordable("too-large", "a dict over the size limit")


def _keep_mapping(value: Mapping[Any, Any], budget: _ByteAllowance, depth: int) -> dict[str, object]:
    kept: dict[str, object] = {}
    for key, inner in value.items():
        name = keep_text(key if isinstance(key, str) else str(key))
        budget.spend(len(name) + _NUMBER_BYTES)
        kept[name] = _keep_inner(inner, budget, depth + 1)
    return kept


def _keep_inner(value: Any, budget: _ByteAllowance, depth: int) -> object:
    """Keep a value in a dict: JSON types unchanged, all others as a string."""
    if depth > _MAX_DEPTH:
        raise Unrecordable("too-large", f"a dict nested more than {_MAX_DEPTH} deep")
    if value is None or type(value) in _PLAIN:
        budget.spend(_NUMBER_BYTES)
        return value if type(value) is not int or abs(value) <= LARGEST_WHOLE else _huge(value, budget)
    if isinstance(value, str):
        budget.spend(len(value))
        return keep_text(value, sys.maxsize)
    if isinstance(value, Mapping):
        return _keep_mapping(value, budget, depth)
    if isinstance(value, list | tuple | set | frozenset):
        budget.spend(_NUMBER_BYTES)
        return [_keep_inner(inner, budget, depth + 1) for inner in value]
    if type(value).__module__.partition(".")[0] in _KEEPERS or _is_tensor(value):
        kept, _ = keep(value)
        if isinstance(kept, DeferredValue):
            raise Unrecordable("bad-value", "an array in a dict; record it under its own name")
        return list(kept) if isinstance(kept, tuple) else kept
    text = str(value)[:_MAX_FOREIGN_TEXT]
    budget.spend(len(text))
    return keep_text(text)


def _huge(value: int, budget: _ByteAllowance) -> str:
    """Return the first hexadecimal digits of a number.

    Decimal conversion is quadratic and limited.
    """
    bits = value.bit_length()
    shift = max(0, bits - 4 * _MAX_FOREIGN_TEXT // 2)
    shown = f"{value:#x}" if not shift else f"{value >> shift:#x}… ({bits} bits)"
    budget.spend(len(shown))
    return shown


def _keep_series(value: list[Any] | tuple[Any, ...], max_bytes: int) -> tuple[float | DeferredValue, ...]:
    if not value:
        raise Unrecordable("bad-value", "an empty list")
    if len(value) * _NUMBER_BYTES > max_bytes:
        raise Unrecordable("too-large", f"a list of {len(value)}")
    return tuple(_keep_element(element) for element in tuple(value))


def _keep_element(element: Any) -> float | DeferredValue:
    if type(element) in _PLAIN:
        return float(element)
    kept, _ = keep(element)
    if isinstance(kept, float | DeferredValue):
        return kept
    raise Unrecordable("bad-value", f"a list that contains {type(element).__name__}")


def _keep_number(value: Any) -> float:
    """Convert a number of any class.

    Subclasses of int and float, Decimal, scalars of other frameworks.
    """
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise Unrecordable("bad-value", f"a {type(value).__name__}: {error}") from error


def _keep_numpy(value: Any) -> float | tuple[float, ...]:
    if value.dtype.kind in _NO_NUMBERS:
        raise Unrecordable("bad-value", f"an array of {value.dtype}")
    if not value.ndim:
        return float(value)
    if value.size == 1:
        return float(value.reshape(()))
    _require_series(value.ndim, value.size)
    return tuple(value.astype("float64").tolist())


def _keep_jax(value: Any) -> float | DeferredValue:
    if not isinstance(value, sys.modules["jax"].Array):
        return _keep_number(value)
    if isinstance(value, sys.modules["jax"].core.Tracer):
        raise Unrecordable("traced-value", "a value inside jit")
    if not hasattr(value, "tolist"):
        raise Unrecordable("bad-value", f"an array of {value.dtype}")
    if value.size != 1:
        _require_series(value.ndim, value.size)
    return DeferredValue(value, _read_jax, is_jax_ready if hasattr(value, "is_ready") else None)


def _read_jax(array: Any) -> Value:
    try:
        return _numbers(array.tolist())
    except RuntimeError as error:
        if array.is_deleted():
            raise Unrecordable("deleted-array", "a jax.Array") from error
        raise


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _keep_tensor(value: Any) -> float | tuple[float, ...] | DeferredValue:
    if not _is_tensor(value):
        return _keep_number(value)
    if hasattr(value, "to_local"):  # reading a DTensor may wait for all other ranks
        raise Unrecordable("bad-value", "a DTensor; record value.full_tensor(), called on all ranks")
    if value.numel() != 1:
        _require_series(value.ndim, value.numel())
    if value.device.type == "cpu":
        return _numbers(value.detach().tolist())
    copy = value.detach().clone()
    if value.device.type != "cuda":
        return DeferredValue(copy, _read_tensor)
    copied = sys.modules["torch"].cuda.Event()
    copied.record()  # on the caller's stream, which need not be the one on which the drain reads
    return DeferredValue((copy, copied), _read_copy, _is_copied)


def _read_tensor(tensor: Any) -> Value:
    return _numbers(tensor.tolist())


def _is_copied(source: tuple[Any, Any]) -> bool:
    return bool(source[1].query())


def _read_copy(source: tuple[Any, Any]) -> Value:
    """Return the numbers of a copy, read on another stream.

    The default stream may have work of a later step, such as a collective that hangs.
    """
    copy, copied = source
    copied.synchronize()
    with sys.modules["torch"].cuda.stream(_reading_stream(copy.device)):
        return _read_tensor(copy)


@lru_cache(maxsize=64)
def _reading_stream(device: Any) -> Any:
    """Return the stream on which values of a device are read.

    It is kept, as torch has few streams, which it reuses in turn.
    """
    return sys.modules["torch"].cuda.Stream(device)


def _numbers(nested: Any) -> float | tuple[float, ...]:
    """Return the result of `tolist` as a number or, if longer, as a series."""
    while isinstance(nested, list) and len(nested) == 1:
        nested = nested[0]
    return _series(nested) if isinstance(nested, list) else float(nested)


def _series(numbers: Iterable[float]) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def _require_series(dimensions: int, size: int) -> None:
    if dimensions != 1 or not size:
        raise Unrecordable("bad-value", f"an array with {dimensions} dimensions and {size} elements")
    if size * _NUMBER_BYTES > MAX_VALUE_BYTES:
        raise Unrecordable("too-large", f"an array of {size}")


_KEEPERS: dict[str, Callable[[Any], float | tuple[float, ...] | DeferredValue]] = {
    "numpy": _keep_numpy,
    "ml_dtypes": _keep_numpy,
    "jax": _keep_jax,
    "jaxlib": _keep_jax,
    "torch": _keep_tensor,
}
"""Function for each package of value types; none of them is imported here."""
