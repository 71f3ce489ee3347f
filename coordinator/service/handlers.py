"""The methods of a coordinator, for workers, operators and other coordinators."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import ripple.control.rpc.coordinator_pb2  # noqa: F401 - so that reflection finds it
from coordinator.decisions import events as ev
from coordinator.decisions.commands import REASON_LENGTH_MAX, Drain, right_of
from coordinator.service.messages import (
    ViewAnswer,
    command_from_bytes,
    done_to_bytes,
    status_to_bytes,
    view_answer_to_bytes,
)
from coordinator.service.sessions import WorkerSession
from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import methods
from ripple.control.rpc.mapping import RpcError
from ripple.control.rpc.messages import worker_message_from_bytes
from ripple.core.access import Right, Role
from ripple.world.control import UNKNOWN_CALLER, RefusedError, Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.service.shell import Shell
    from ripple.control.assignment.bounds import Who
    from ripple.control.rpc.membership_messages import WorkerMessage
    from ripple.core.access import Access, Caller
    from ripple.world.control import Conversation

# A worker sends a message every heartbeat: one that is silent for so long is gone.
SILENT_S = 60.0
# The role that a method takes; a command declares its own.
_NEEDED = {
    methods.STATUS: Right.READ,
    methods.VIEW: Right.TAKE_PART,
    methods.CONVERSE: Right.TAKE_PART,
    methods.PIPELINES: Right.READ,
}


class Handlers:
    """Handles calls and conversations of one coordinator."""

    def __init__(
        self,
        shell: Shell,
        access: Access | None = None,
        credential: Callable[[], str] = lambda: "",
    ) -> None:
        """Answer the callers that ``access`` admits, or all. credential: for subscriptions."""
        self._shell = shell
        self._access = access
        self._credential = credential

    @property
    def service(self) -> Service:
        """Its methods."""
        return Service(
            calls={
                methods.COMMAND: self._command,
                methods.STATUS: self._status,
                methods.VIEW: self._view,
            },
            conversations={methods.CONVERSE: self._converse},
            allows=None if self._access is None else partial(refusal, self._access),
        )

    async def _command(self, request: bytes) -> bytes:
        try:
            command = command_from_bytes(request)
        except RpcError as error:
            raise RefusedError(str(error)) from error
        return done_to_bytes(await self._shell.command(command))

    async def _status(self, _: bytes) -> bytes:
        status = self._shell.status
        if status is None:
            raise RefusedError("the store has not been read yet: try again")
        return status_to_bytes(status, self._credential())

    async def _view(self, _: bytes) -> bytes:
        newest = self._shell.state.newest_number
        return view_answer_to_bytes(ViewAnswer(self._shell.view, newest))

    async def _converse(self, conversation: Conversation) -> None:
        session = WorkerSession(conversation)
        self._shell.sessions.begin(session)
        sending = asyncio.ensure_future(session.send_all())
        try:
            await self._listen(session)
        except TimeoutError:
            pass  # the conversation ends when this returns
        finally:
            sending.cancel()
            self._ended(session)

    async def _listen(self, session: WorkerSession) -> None:
        while True:
            async with asyncio.timeout(SILENT_S):
                data = await session.conversation.receive()
            if data is None:
                return
            try:
                said = worker_message_from_bytes(data)
            except RpcError as error:
                raise RefusedError(str(error)) from error
            self._hear(session, said)
            session.answer(self._shell.state.newest_number)

    def _hear(self, session: WorkerSession, said: WorkerMessage) -> None:
        handle, sessions = self._shell.handle, self._shell.sessions
        match said:
            case msg.Register(candidate):
                sessions.asks(session, candidate.nonce)
                handle(said)
            case msg.Heartbeat(who) | msg.Left(who):
                sessions.speaks(session, who)
                handle(said)
            case msg.Exited() | msg.Checkpointed():
                handle(said)
            case msg.Draining(who, reason):
                self._drain(who, reason)
            case msg.Present():
                pass

    def _drain(self, who: Who, reason: str) -> None:
        """Drain a member that asks for it, again and again until it is drained."""
        now = self._shell.state.now
        if now is None or not now.has(*who) or now.by_id[who[0]].is_leaving:
            return
        command = Drain(who[0], reason.strip()[:REASON_LENGTH_MAX] or "it is to stop")
        self._shell.handle(ev.Commanded(f"{who[0]} {who[1]} drains", command))

    def _ended(self, session: WorkerSession) -> None:
        nonce, who = self._shell.sessions.end(session)
        if nonce is not None:
            self._shell.handle(ev.Withdrawn(nonce))
        if who is not None:
            self._shell.handle(ev.StreamEnded(who))


def refusal(access: Access, method: str, caller: Caller, request: bytes) -> str | None:
    """Return the reason to refuse a method to a caller, None for no reason."""
    known = access.known(caller)
    needed = _NEEDED.get(method) or _needed_by(request)
    if known.may(needed):
        return None
    if known.role is Role.NOBODY:
        return UNKNOWN_CALLER
    return f"{known.name} is {known.role.value}, and may not {needed.value}"


def _needed_by(request: bytes) -> Right:
    try:
        return right_of(command_from_bytes(request))
    except RpcError:
        return Right.OPERATE  # it is told what is wrong with it
