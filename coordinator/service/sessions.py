"""Sessions with workers: pending messages, and the session of each worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.control.rpc.membership_messages import Announced
from ripple.control.rpc.messages import coordinator_message_to_bytes
from ripple.world.control import ControlError

if TYPE_CHECKING:
    from ripple.control.assignment.bounds import Who
    from ripple.control.rpc.membership_messages import CoordinatorMessage
    from ripple.world.control import Conversation


class WorkerSession:
    """One session. nonce, who: of the worker that last spoke in it, if any.

    Of each kind of message, the newest is kept until it is sent, which bounds the queue.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.nonce: str | None = None
        self.who: Who | None = None
        self._version = -1
        self._waiting: dict[type, CoordinatorMessage] = {}
        self._wake = asyncio.Event()

    def send(self, message: CoordinatorMessage) -> None:
        """Queue a message."""
        self._waiting[type(message)] = message
        self._wake.set()

    def announce(self, version: int) -> None:
        """Announce a version, unless it was announced already."""
        if version > self._version:
            self.answer(version)

    def answer(self, version: int) -> None:
        """Answer with a version, so that the worker hears something."""
        self._version = version
        self.send(Announced(version))

    async def send_all(self) -> None:
        """Send queued messages until the conversation breaks."""
        with suppress(ControlError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._waiting = self._waiting, {}
                for message in waiting.values():
                    await self.conversation.send(coordinator_message_to_bytes(message))


class WorkerSessions:
    """All sessions, by the worker that last spoke in each."""

    def __init__(self) -> None:
        self._all: dict[int, WorkerSession] = {}
        self._by_nonce: dict[str, WorkerSession] = {}
        self._by_who: dict[Who, WorkerSession] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, session: WorkerSession) -> None:
        """Add a session."""
        self._all[id(session)] = session

    def asks(self, session: WorkerSession, nonce: str) -> None:
        """Note that the candidate with a nonce speaks here."""
        self._forget_nonce(session, nonce)
        session.nonce = nonce
        self._by_nonce[nonce] = session

    def speaks(self, session: WorkerSession, who: Who) -> None:
        """Note that a member speaks here."""
        if (
            session.who is not None
            and session.who != who
            and self._by_who.get(session.who) is session
        ):
            del self._by_who[session.who]
        self._forget_nonce(session, None)  # it has joined
        session.nonce, session.who = None, who
        self._by_who[who] = session

    def end(self, session: WorkerSession) -> tuple[str | None, Who | None]:
        """Remove a session; return the nonce and member that cannot be reached any more."""
        self._all.pop(id(session), None)
        nonce = session.nonce if self._by_nonce.get(session.nonce or "") is session else None
        who = (
            session.who
            if session.who is not None and self._by_who.get(session.who) is session
            else None
        )
        if nonce is not None:
            del self._by_nonce[nonce]
        if who is not None:
            del self._by_who[who]
        return nonce, who

    def announce(self, version: int) -> None:
        """Announce a version to all workers."""
        for session in self._all.values():
            session.announce(version)

    def send_to_candidate(self, nonce: str, message: CoordinatorMessage) -> None:
        """Send to the candidate with a nonce, if it is there."""
        if nonce in self._by_nonce:
            self._by_nonce[nonce].send(message)

    def send_to_member(self, who: Who, message: CoordinatorMessage) -> None:
        """Send to a member, if it is there."""
        if who in self._by_who:
            self._by_who[who].send(message)

    def _forget_nonce(self, session: WorkerSession, nonce: str | None) -> None:
        before = session.nonce
        if before is not None and before != nonce and self._by_nonce.get(before) is session:
            del self._by_nonce[before]
