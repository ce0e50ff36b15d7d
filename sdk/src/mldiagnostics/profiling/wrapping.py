"""A context manager around every call of a function, generator or coroutine."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    Block = Callable[[], AbstractContextManager[object]]

Function = TypeVar("Function", bound="Callable[..., Any]")


def wrap(function: Function, block: Block) -> Function:
    """Return `function` with `block()` around each call, same name and signature.

    For generators the block starts with the first item and ends with the last one, or when they are closed.
    """
    if inspect.iscoroutinefunction(function):
        wrapper: Callable[..., Any] = _coroutine(function, block)
    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, block)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, block)
    else:
        wrapper = _plain(function, block)
    return cast("Function", functools.wraps(function)(wrapper))


def _plain(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return wrapper


def _generator(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with block():
            return (yield from function(*args, **kwargs))

    return wrapper


def _coroutine(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return wrapper


def _async_generator(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with block():
            async with contextlib.aclosing(function(*args, **kwargs)) as items:
                with contextlib.suppress(StopAsyncIteration):
                    item = await anext(items)
                    while True:
                        try:
                            sent = yield item
                        except GeneratorExit:  # noqa: PERF203 - the caller may throw at each item
                            raise
                        except BaseException as thrown:  # noqa: BLE001 - the function handles thrown exceptions
                            item = await items.athrow(thrown)
                        else:
                            item = await items.asend(sent)

    return wrapper
