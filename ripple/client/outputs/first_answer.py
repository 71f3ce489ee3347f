"""The first answer of several coordinators, any of which may be frozen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.world.control import ControlError, RefusedError
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ripple.world.control import Channel, Control
    from ripple.world.tls import Tls

# After this time without an answer, the next coordinator is asked, too.
PATIENCE_S = 0.5


async def first_answer(
    control: Control,
    coordinators: Sequence[str],
    method: str,
    request: bytes,
    *,
    deadline_s: float,
    tls: Tls | None = None,
) -> tuple[str, bytes]:
    """Send an idempotent request; return the address that answered first, and its answer.

    A refusal may come from a coordinator that lags. Raises RefusedError, which names its sender, if
    no other coordinator answers, and ConnectionError if none does.
    """
    left, problems = list(coordinators), []
    refused: RefusedError | None = None
    asked: dict[asyncio.Task[bytes], str] = {}
    try:
        while left or asked:
            if left:
                address = left.pop(0)
                asking = _ask(control.channel(address, tls=tls), method, request, deadline_s)
                asked[asyncio.ensure_future(asking)] = address
            await asyncio.wait(
                asked,
                timeout=PATIENCE_S if left else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in [task for task in asked if task.done()]:
                address = asked.pop(task)
                try:
                    return address, task.result()
                except RefusedError as error:
                    refused = refused or RefusedError(f"{address} refuses: {error}")
                except ControlError as error:
                    problems.append(str(error))
    finally:
        await called_off(*asked)
    if refused is not None:
        raise refused
    raise unanswered(problems)


def unanswered(problems: Iterable[str]) -> ConnectionError:
    """Return the error where none of the coordinators answers."""
    return ConnectionError(
        f"no coordinator answers: {'; '.join(problems)} (ripple cluster up prints the address: "
        "--coordinator or RIPPLE_COORDINATOR names it)"
    )


async def _ask(channel: Channel, method: str, request: bytes, deadline_s: float) -> bytes:
    try:
        return await channel.call(method, request, deadline_s=deadline_s)
    finally:
        await channel.close()
