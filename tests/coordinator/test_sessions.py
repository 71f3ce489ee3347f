"""Sessions with workers: the session of each worker, and bounded queues."""

from __future__ import annotations

import asyncio

from coordinator.service.sessions import WorkerSession, WorkerSessions
from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc.messages import coordinator_message_from_bytes
from ripple.world.control import UnreachableError

WHO = ("w1", 3)


class Slow:
    """A worker that takes nothing until it is let, and is gone after ``length_max`` messages."""

    peer = "w1:1"

    def __init__(self, length_max: int = 100) -> None:
        self.told: list[msg.CoordinatorMessage] = []
        self.may = asyncio.Event()
        self._length_max = length_max

    async def send(self, message: bytes) -> None:
        await self.may.wait()
        if len(self.told) == self._length_max:
            raise UnreachableError("it is gone")
        self.told.append(coordinator_message_from_bytes(message))

    async def receive(self) -> bytes | None:
        raise AssertionError("nobody listens here")


def session() -> WorkerSession:
    return WorkerSession(Slow())


def test_member_is_told_where_it_spoke_last() -> None:
    sessions, old, new = WorkerSessions(), session(), session()
    for each in (old, new):
        sessions.begin(each)
        sessions.speaks(each, WHO)
    assert sessions.end(old) == (None, None), "it speaks elsewhere: its stream has not ended"
    assert sessions.end(new) == (None, WHO)
    assert len(sessions) == 0


def test_candidate_that_joins_is_no_candidate_any_more() -> None:
    sessions, one = WorkerSessions(), session()
    sessions.begin(one)
    sessions.asks(one, "n1")
    sessions.speaks(one, WHO)
    assert sessions.end(one) == (None, WHO)


def test_candidate_under_another_nonce_is_another() -> None:
    sessions, one, other = WorkerSessions(), session(), session()
    sessions.begin(one)
    sessions.begin(other)
    sessions.asks(one, "n1")
    sessions.asks(one, "n2")
    sessions.asks(other, "n1")
    assert sessions.end(one) == ("n2", None)
    assert sessions.end(other) == ("n1", None)


async def test_slow_worker_is_told_the_newest_of_each_kind() -> None:
    slow = Slow()
    one = WorkerSession(slow)
    sessions = WorkerSessions()
    sessions.begin(one)
    sessions.asks(one, "n")
    sending = asyncio.ensure_future(one.send_all())
    sessions.announce(1)
    await asyncio.sleep(0)
    for version in range(2, 1000):
        sessions.announce(version)
        sessions.send_to_candidate("n", msg.Refused("n", f"reason {version}"))
        sessions.send_to_candidate("other", msg.Refused("other", "not here"))
    sessions.announce(5)  # an old one is no news
    slow.may.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert slow.told == [
        msg.Announced(1),
        msg.Announced(999),
        msg.Refused("n", "reason 999"),
    ]
    sending.cancel()


async def test_conversation_that_breaks_is_told_nothing_more() -> None:
    slow = Slow(0)
    slow.may.set()
    one = WorkerSession(slow)
    one.announce(1)
    await asyncio.wait_for(one.send_all(), 5)
    assert slow.told == []
