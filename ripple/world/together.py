"""Several things at a time: requests of a network, and work in threads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")


async def together(*asked: Coroutine[Any, Any, T]) -> list[T]:
    """Wait until all requests are answered; raise the first error then: nothing is under way."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers  # type: ignore[return-value]


async def called_off(*doing: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait for their ends; their errors are dropped."""
    for one in doing:
        one.cancel()
    if doing:  # with none, outside of an event loop, gather would make a loop
        await asyncio.gather(*doing, return_exceptions=True)


async def to_its_end(doing: asyncio.Future[T]) -> T:
    """Return the result of work in a thread; a cancelled caller waits for its end all the same."""
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():  # what it uses must not be closed under it
        try:
            await asyncio.wait([doing])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not doing.cancelled():
            doing.exception()  # otherwise reported as never retrieved
        raise cancelled
    return doing.result()
