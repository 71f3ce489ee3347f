"""The connection to one coordinator: a conversation, restarted whenever it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import methods
from ripple.control.rpc.mapping import RpcError
from ripple.control.rpc.messages import coordinator_message_from_bytes, worker_message_to_bytes
from ripple.core import events
from ripple.world.control import ControlError, DeadlineError
from ripple.world.pauses import doubling, jittered

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ripple.control.rpc.membership_messages import CoordinatorMessage, WorkerMessage
    from ripple.world.control import Channel, OpenConversation
    from ripple.world.ports import World
    from ripple.world.tls import Tls

OPEN_S = 5.0
# Every message is answered: a coordinator that is silent for so long, or for so long after the next
# heartbeat, is unreachable.
SILENT_S = 5.0
ANSWER_S = 4.0
# A worker whose stream has ended is dead after three seconds: the first retries are sooner.
PAUSE_S = 0.1
PAUSE_MAX_S = 2.0
NS = 1_000_000_000


class CoordinatorLink:
    """Sends messages to the coordinator at ``address``.

    beat: returns the first message of a conversation, repeated every interval_s. take: receives the
    coordinator's messages. Of messages that wait, the newest is kept.
    """

    def __init__(
        self,
        world: World,
        address: str,
        tls: Tls | None,
        *,
        beat: Callable[[], list[WorkerMessage]],
        take: Callable[[CoordinatorMessage, str], None],
        emit: events.EventListener,
        interval_s: float,
    ) -> None:
        self.address = address
        self._world = world
        self._tls = tls
        self._beat, self._take, self._emit = beat, take, emit
        self._silent_s = max(SILENT_S, interval_s + ANSWER_S)
        self._channel: Channel | None = None
        self._waiting: dict[Hashable, bytes] = {}
        self._wake = asyncio.Event()
        self._heard_ns: int | None = None
        self._is_lost = False
        self._said_ns: int | None = None  # not answered yet

    @property
    def answers(self) -> bool:
        """Whether the coordinator has answered lately."""
        now_ns = self._world.clock.monotonic_ns()
        return self._heard_ns is not None and now_ns - self._heard_ns < self._silent_s * NS

    def say(self, said: WorkerMessage) -> None:
        """Send a message, now or once there is a conversation."""
        slot = said.slot if isinstance(said, msg.Exited) else None
        self._waiting[type(said), slot] = worker_message_to_bytes(said)
        self._wake.set()

    def connect(self) -> None:
        """Prepare to run. Raises TlsError."""
        assert self._world.control is not None
        self._channel = self._world.control.channel(self.address, tls=self._tls)

    async def run(self) -> None:
        """Converse with the coordinator, for ever."""
        pauses_s = doubling(2 * PAUSE_S, PAUSE_MAX_S)
        while True:
            self._heard_ns = None
            reason = await self._end_of_conversation()
            if self._heard_ns is not None:
                pauses_s = doubling(PAUSE_S, PAUSE_MAX_S)
            self._lost(reason)
            await self._world.clock.sleep(jittered(next(pauses_s), self._world.random))

    async def _end_of_conversation(self) -> str:
        """Run one conversation to its end; return why it ended."""
        try:
            if self._channel is None:
                self.connect()
            await self._converse()
        except (TimeoutError, DeadlineError):
            # The connection may be half open: use another one next time.
            await self.close()
            return f"no answer for {self._silent_s} s"
        except (ControlError, RpcError, OSError) as error:
            return str(error)
        return "it has ended the conversation"

    async def close(self) -> None:
        """End the conversation."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _converse(self) -> None:
        assert self._channel is not None
        conversation = await self._channel.open(methods.CONVERSE, deadline_s=OPEN_S)
        self._waiting.clear()  # of an earlier conversation
        for said in self._beat():
            self.say(said)
        sending = asyncio.ensure_future(self._send(conversation))
        try:
            while True:
                async with asyncio.timeout(self._silent_s):
                    data = await conversation.receive()
                if data is None:
                    return
                message = coordinator_message_from_bytes(data)
                self._found()
                self._take(message, self.address)
        finally:
            sending.cancel()
            conversation.close()
            self._said_ns = None

    async def _send(self, conversation: OpenConversation) -> None:
        """Send waiting messages until the conversation breaks."""
        with suppress(ControlError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._waiting = self._waiting, {}
                if self._said_ns is None:
                    self._said_ns = self._world.clock.monotonic_ns()
                for message in waiting.values():
                    await conversation.send(message)

    def _found(self) -> None:
        if self._heard_ns is None:
            self._is_lost = False
            self._emit(events.CoordinatorFound(self.address))
        self._heard_ns = self._world.clock.monotonic_ns()
        if self._said_ns is not None:
            took_ns, self._said_ns = self._heard_ns - self._said_ns, None
            self._emit(events.CoordinatorAnswered(self.address, took_ns))

    def _lost(self, reason: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._emit(events.CoordinatorLost(self.address, reason))
