"""The conversations with workers: what each is still to be told, and who speaks in which."""

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
    """One conversation. nonce, who: as whom the worker has spoken in it last, if at all.

    Of each kind of word, the newest is kept until it is sent: the bound of what waits.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.nonce: str | None = None
        self.who: Who | None = None
        self._version = -1
        self._waiting: dict[type, Told] = {}
        self._wake = asyncio.Event()

    def tell(self, told: Told) -> None:
        """Let the worker be told something."""
        self._waiting[type(told)] = told
        self._wake.set()

    def announce(self, version: int) -> None:
        """Let it be told of a version, unless it was."""
        if version > self._version:
            self.answer(version)

    def answer(self, version: int) -> None:
        """Let it be told of a version, so that it hears something."""
        self._version = version
        self.tell(Announced(version))

    async def send_all(self) -> None:
        """Send what is to be told until the conversation breaks, which who listens hears too."""
        with suppress(ControlError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._waiting = self._waiting, {}
                for told in waiting.values():
                    await self.conversation.send(told_to_bytes(told))


class WorkerSessions:
    """All conversations, and in which of them whoever is meant spoke last."""

    def __init__(self) -> None:
        self._all: dict[int, WorkerSession] = {}
        self._by_nonce: dict[str, WorkerSession] = {}
        self._by_who: dict[Who, WorkerSession] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, talk: WorkerSession) -> None:
        """Take a conversation that has begun."""
        self._all[id(talk)] = talk

    def asks(self, talk: WorkerSession, nonce: str) -> None:
        """Note that who asks to join under a nonce speaks here."""
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
        """Forget a conversation; return who can be told nothing any more: a nonce, a member."""
        self._all.pop(id(talk), None)
        nonce = talk.nonce if self._by_nonce.get(talk.nonce or "") is talk else None
        who = talk.who if talk.who is not None and self._by_who.get(talk.who) is talk else None
        if nonce is not None:
            del self._by_nonce[nonce]
        if who is not None:
            del self._by_who[who]
        return nonce, who

    def announce(self, version: int) -> None:
        """Tell everybody of a version."""
        for talk in self._all.values():
            talk.announce(version)

    def tell_candidate(self, nonce: str, told: Told) -> None:
        """Tell who asks to join under a nonce, if it is there."""
        if nonce in self._by_nonce:
            self._by_nonce[nonce].tell(told)

    def tell_member(self, who: Who, told: Told) -> None:
        """Tell a member, if it is there."""
        if who in self._by_who:
            self._by_who[who].tell(told)

    def _forget_nonce(self, talk: WorkerSession, nonce: str | None) -> None:
        before = talk.nonce
        if before is not None and before != nonce and self._by_nonce.get(before) is talk:
            del self._by_nonce[before]
