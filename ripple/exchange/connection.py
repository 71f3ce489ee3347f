"""Carries bytes between a network stream and a session, at either end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.exchange.wire.messages import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.exchange.session import Session
    from ripple.world.ports import Clock, Stream

LOOK_S = 1.0  # interval of ticks when no deadline is nearer
GOODBYE_S = 1.0
READ_BYTES = 1 << 18


async def speak(
    stream: Stream,
    session: Session,
    clock: Clock,
    *,
    dirty: asyncio.Event,
    stopping: asyncio.Event,
    opened: Callable[[], None],
) -> str:
    """Carry bytes until either side closes or ``stopping`` is set; return the reason.

    dirty: set when the session has something to send. opened: called once the connection is usable.
    Raises errors that are not the connection's.
    """
    session.greet()
    parts = [
        asyncio.create_task(part)
        for part in (
            _receive(stream, session, clock, opened),
            _send(stream, session, clock, dirty),
            _tick(session, dirty, clock),
            stopping.wait(),
        )
    ]
    broken: list[Exception] = []
    try:
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for part in parts:
            part.cancel()
        ends = await asyncio.gather(*parts, return_exceptions=True)
        broken.extend(end for end in ends if isinstance(end, Exception))
        session.close(Reason.SHUTDOWN)
        if not broken:
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(GOODBYE_S):
                    await stream.write(session.data_to_send())
        session.abandon()
    for error in broken:
        if not isinstance(error, ConnectionError):
            raise error
    return session.failure or "; ".join(map(str, broken)) or "the peer closed the connection"


async def _receive(
    stream: Stream, session: Session, clock: Clock, opened: Callable[[], None]
) -> None:
    was_open = False
    while not session.ended:
        data = await stream.read(READ_BYTES)
        now_ns = clock.monotonic_ns()
        if not data:
            session.receive_eof(now_ns)
            return
        session.receive(data, now_ns)
        if session.is_open and not was_open:
            was_open = True
            opened()


async def _send(stream: Stream, session: Session, clock: Clock, dirty: asyncio.Event) -> None:
    while not session.ended:
        dirty.clear()
        while data := session.data_to_send():
            await stream.write(data)
            await clock.sleep(0)  # yield to other tasks after a write that did not wait
        if not session.ended:
            await dirty.wait()


async def _tick(session: Session, dirty: asyncio.Event, clock: Clock) -> None:
    """Tick even while writing is blocked, so that a half-open connection is detected."""
    while not session.ended:
        now_ns = clock.monotonic_ns()
        deadline_ns = session.next_deadline_ns
        if deadline_ns is not None and deadline_ns <= now_ns:
            session.tick(now_ns)
            dirty.set()
            continue
        left_s = LOOK_S if deadline_ns is None else (deadline_ns - now_ns) / 1e9
        await clock.sleep(min(left_s, LOOK_S))
