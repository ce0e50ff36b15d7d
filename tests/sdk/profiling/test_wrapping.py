"""Decorated functions keep name, kind and signature, with a block around each call."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.profiling.wrapping import wrap

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator


class Blocks:
    """Records the start and end of each block."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self.notes.append("begin")
        try:
            yield
        finally:
            self.notes.append("end")


@pytest.fixture
def blocks() -> Blocks:
    return Blocks()


def plain(x: int, *, by: int = 2) -> int:
    """Multiply."""
    return x * by


def generator(x: int) -> Generator[int, int, str]:
    """Echo sent values."""
    sent = yield x
    try:
        yield sent
    except KeyError:
        yield -1
    return "done"


async def coroutine(x: int) -> int:
    """Return it."""
    return x


async def async_generator(x: int) -> AsyncGenerator[int, int]:
    """Echo sent values."""
    sent = yield x
    try:
        yield sent
    except KeyError:
        yield -1


@pytest.mark.parametrize("function", [plain, generator, coroutine, async_generator])
def test_a_wrapped_function_keeps_its_name_docstring_kind_and_signature(function: Any, blocks: Blocks) -> None:
    wrapped = wrap(function, blocks)
    for same in (
        lambda f: f.__name__,
        lambda f: f.__doc__,
        inspect.signature,
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    ):
        assert same(wrapped) == same(function)
    assert blocks.notes == []


def test_a_function_is_called_inside_its_block(blocks: Blocks) -> None:
    assert wrap(plain, blocks)(3, by=5) == 15
    assert blocks.notes == ["begin", "end"]


def test_an_exception_ends_the_block(blocks: Blocks) -> None:
    with pytest.raises(TypeError):
        wrap(plain, blocks)()  # type: ignore[call-arg]  # invalid on purpose
    assert blocks.notes == ["begin", "end"]


def test_a_method_gets_its_object(blocks: Blocks) -> None:
    class Trainer:
        step = wrap(lambda self: self, blocks)

    trainer = Trainer()
    assert trainer.step() is trainer


def test_a_generators_block_lasts_from_its_first_item_to_its_last(blocks: Blocks) -> None:
    items = wrap(generator, blocks)(1)
    assert blocks.notes == []
    assert [next(items), items.send(7), items.throw(KeyError())] == [1, 7, -1]
    assert blocks.notes == ["begin"]
    with pytest.raises(StopIteration, match="done"):
        next(items)
    assert blocks.notes == ["begin", "end"]


def test_a_closed_generator_ends_its_block(blocks: Blocks) -> None:
    items = wrap(generator, blocks)(1)
    next(items)
    items.close()
    assert blocks.notes == ["begin", "end"]


async def test_a_coroutine_is_awaited_inside_its_block(blocks: Blocks) -> None:
    coroutine_call = wrap(coroutine, blocks)(4)
    assert blocks.notes == []
    assert await coroutine_call == 4
    assert blocks.notes == ["begin", "end"]


async def test_an_async_generator_receives_sent_values_and_exceptions(blocks: Blocks) -> None:
    items = wrap(async_generator, blocks)(1)
    assert [await anext(items), await items.asend(7), await items.athrow(KeyError())] == [1, 7, -1]
    assert blocks.notes == ["begin"]
    assert [item async for item in items] == []
    assert blocks.notes == ["begin", "end"]


async def test_a_closed_async_generator_ends_its_block_and_the_functions(blocks: Blocks) -> None:
    left = []

    async def endless() -> AsyncGenerator[int, None]:
        try:
            while True:
                yield 1
        finally:
            left.append("function")

    items = wrap(endless, blocks)()
    await anext(items)
    await items.aclose()
    assert (blocks.notes, left) == (["begin", "end"], ["function"])
