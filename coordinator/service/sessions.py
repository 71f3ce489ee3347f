"""Sessions with workers: pending messages, and the session of each worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.control.rpc.messages import told_to_bytes
from ripple.control.rpc.words import Announced
from ripple.world.control import ControlError

if TYPE_CHECKING:
    from ripple.control.rpc.words import Told, Who
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
        self._waiting: dict[type, Told] = {}
        self._wake = asyncio.Event()

    def tell(self, told: Told) -> None:
        """Queue a message."""
        self._waiting[type(told)] = told
        self._wake.set()

    def announce(self, version: int) -> None:
        """Announce a version, unless it was announced already."""
        if version > self._version:
            self.answer(version)

    def answer(self, version: int) -> None:
        """Answer with a version, so that the worker hears something."""
        self._version = version
        self.tell(Announced(version))

    async def send_all(self) -> None:
        """Send queued messages until the conversation breaks."""
        with suppress(ControlError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._waiting = self._waiting, {}
                for told in waiting.values():
                    await self.conversation.send(told_to_bytes(told))


class WorkerSessions:
    """All sessions, by the worker that last spoke in each."""

    def __init__(self) -> None:
        self._all: dict[int, WorkerSession] = {}
        self._by_nonce: dict[str, WorkerSession] = {}
        self._by_who: dict[Who, WorkerSession] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, talk: WorkerSession) -> None:
        """Add a session."""
        self._all[id(talk)] = talk

    def asks(self, talk: WorkerSession, nonce: str) -> None:
        """Note that the candidate with a nonce speaks here."""
        self._forget_nonce(talk, nonce)
        talk.nonce = nonce
        self._by_nonce[nonce] = talk

    def speaks(self, talk: WorkerSession, who: Who) -> None:
        """Note that a member speaks here."""
        if talk.who is not None and talk.who != who and self._by_who.get(talk.who) is talk:
            del self._by_who[talk.who]
        self._forget_nonce(talk, None)  # it has joined
        talk.nonce, talk.who = None, who
        self._by_who[who] = talk

    def end(self, talk: WorkerSession) -> tuple[str | None, Who | None]:
        """Remove a session; return the nonce and member that cannot be reached any more."""
        self._all.pop(id(talk), None)
        nonce = talk.nonce if self._by_nonce.get(talk.nonce or "") is talk else None
        who = talk.who if talk.who is not None and self._by_who.get(talk.who) is talk else None
        if nonce is not None:
            del self._by_nonce[nonce]
        if who is not None:
            del self._by_who[who]
        return nonce, who

    def announce(self, version: int) -> None:
        """Announce a version to all workers."""
        for talk in self._all.values():
            talk.announce(version)

    def tell_candidate(self, nonce: str, told: Told) -> None:
        """Send to the candidate with a nonce, if it is there."""
        if nonce in self._by_nonce:
            self._by_nonce[nonce].tell(told)

    def tell_member(self, who: Who, told: Told) -> None:
        """Send to a member, if it is there."""
        if who in self._by_who:
            self._by_who[who].tell(told)

    def _forget_nonce(self, talk: WorkerSession, nonce: str | None) -> None:
        before = talk.nonce
        if before is not None and before != nonce and self._by_nonce.get(before) is talk:
            del self._by_nonce[before]
