"""The contract of control ports; each form of the port runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from ripple.core.errors import LimitError
from ripple.world.control import (
    BUSY,
    MESSAGE_BYTES_MAX,
    NO_METHOD,
    Control,
    Conversation,
    DeadlineError,
    RefusedError,
    Service,
    UnreachableError,
)
from tests.patience import PATIENCE_S
from tests.run_by import run_by
from tests.world.tls_contract import Certificates

PLACE = "localhost:0"
MIB = 1 << 20
Main = Callable[[Control, Certificates], Awaitable[Any]]

in_its_world = run_by(lambda contract, main: contract.run(main), "control", "certificates")


class ControlContract:
    """Subclasses say how ``main`` runs in a world with an empty network."""

    def run(self, main: Main) -> None:
        raise NotImplementedError

    def lasting_place(self) -> str:
        """Return a place that nobody takes while its service is away."""
        return PLACE

    @in_its_world
    async def test_call_is_answered(self, control: Control) -> None:
        async with offered(control, Service({"a.B/Upper": upper})) as channel:
            assert await channel.call("a.B/Upper", b"abc", deadline_s=PATIENCE_S) == b"ABC"
            assert await channel.call("a.B/Upper", b"", deadline_s=PATIENCE_S) == b""
            long = b"x" * (MESSAGE_BYTES_MAX - 100)
            assert await channel.call("a.B/Upper", long, deadline_s=PATIENCE_S) == long.upper()

    @in_its_world
    async def test_many_calls_at_once_get_their_own_answers(self, control: Control) -> None:
        async def later(request: bytes) -> bytes:
            await asyncio.sleep(0.1 / (1 + request[0]))
            return upper_of(request)

        async with offered(control, Service({"m": later})) as channel:
            asked = [bytes([number]) + b"abc" for number in range(50)]
            answers = await asyncio.gather(
                *(channel.call("m", each, deadline_s=PATIENCE_S) for each in asked)
            )
            assert answers == [upper_of(each) for each in asked]

    @in_its_world
    async def test_refusal_tells_its_reason(self, control: Control) -> None:
        async def refuse(request: bytes) -> bytes:
            raise RefusedError("the schemas differ: größer")

        async with offered(control, Service({"m": refuse})) as channel:
            with pytest.raises(RefusedError, match="the schemas differ: größer"):
                await channel.call("m", b"", deadline_s=PATIENCE_S)
            with pytest.raises(RefusedError, match=NO_METHOD):
                await channel.call("other", b"", deadline_s=PATIENCE_S)

    @in_its_world
    async def test_messages_that_are_too_long_are_not_sent(self, control: Control) -> None:
        async def long(request: bytes) -> bytes:
            return bytes(MESSAGE_BYTES_MAX + 1)

        service = Service({"m": long}, {"c": echo})
        async with offered(control, service) as channel:
            with pytest.raises(LimitError):
                await channel.call("m", bytes(MESSAGE_BYTES_MAX + 1), deadline_s=PATIENCE_S)
            with pytest.raises(RefusedError, match=str(MESSAGE_BYTES_MAX)):
                await channel.call("m", b"", deadline_s=PATIENCE_S)
            conversation = await channel.open("c", deadline_s=PATIENCE_S)
            with pytest.raises(LimitError):
                await conversation.send(bytes(MESSAGE_BYTES_MAX + 1))
            await conversation.send(b"short")
            assert await conversation.receive() == b"short"
            conversation.close()

    @in_its_world
    async def test_call_without_an_answer_in_time_fails_and_its_handler_is_cancelled(
        self, control: Control
    ) -> None:
        cancelled = asyncio.Event()

        async def wait(request: bytes) -> bytes:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return b""

        cancelled = asyncio.Event()
        async with offered(control, Service({"m": wait})) as channel:
            with pytest.raises(DeadlineError):
                await channel.call("m", b"", deadline_s=0.3)
            await asyncio.wait_for(cancelled.wait(), PATIENCE_S)

    @in_its_world
    async def test_handler_of_a_cancelled_call_is_cancelled(self, control: Control) -> None:
        begun = cancelled = asyncio.Event()

        async def wait(request: bytes) -> bytes:
            begun.set()
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.set()
            return b""

        begun, cancelled = asyncio.Event(), asyncio.Event()
        async with offered(control, Service({"m": wait})) as channel:
            calling = asyncio.ensure_future(channel.call("m", b"", deadline_s=PATIENCE_S))
            await begun.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await asyncio.wait_for(cancelled.wait(), PATIENCE_S)

    @in_its_world
    async def test_unanswered_call_is_unreachable(self, control: Control) -> None:
        server = await control.serve(PLACE, Service())
        await server.close()
        channel = control.channel(server.address)
        with pytest.raises(UnreachableError):
            await channel.call("m", b"", deadline_s=PATIENCE_S)
        with pytest.raises(UnreachableError):
            await channel.open("m", deadline_s=PATIENCE_S)
        await channel.close()
        await channel.close()
        with pytest.raises(UnreachableError, match="closed"):
            await channel.call("m", b"", deadline_s=PATIENCE_S)

    @in_its_world
    async def test_address_that_is_taken_is_refused(self, control: Control) -> None:
        server = await control.serve("127.0.0.1:0", Service())
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await control.serve(server.address, Service())
        await server.close()

    @in_its_world
    async def test_same_channel_finds_a_service_that_comes_back(self, control: Control) -> None:
        service = Service({"m": upper})
        server = await control.serve(self.lasting_place(), service)
        channel = control.channel(server.address)
        assert await channel.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
        await server.close()
        with pytest.raises(UnreachableError):
            await channel.call("m", b"a", deadline_s=PATIENCE_S)
        server = await control.serve(server.address, service)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(UnreachableError):
                    assert await channel.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
                    break
                await asyncio.sleep(0.1)
        await channel.close()
        await server.close()

    @in_its_world
    async def test_conversation_carries_messages_both_ways_in_order(
        self, control: Control, certificates: Certificates
    ) -> None:
        async with offered(control, Service(conversations={"c": echo})) as channel:
            one, other = [await channel.open("c", deadline_s=PATIENCE_S) for _ in range(2)]
            for number in range(20):
                await one.send(b"one%d" % number)
                await other.send(b"other%d" % number)
            assert one.peer == other.peer
            for number in range(20):
                assert await other.receive() == b"other%d" % number
                assert await one.receive() == b"one%d" % number
            await one.send(b"")
            assert await one.receive() == b""
            await one.finish()
            assert await one.receive() is None
            assert await one.receive() is None
            other.close()
            other.close()

    @in_its_world
    async def test_handler_ends_or_refuses_a_conversation(self, control: Control) -> None:
        async def greet(conversation: Conversation) -> None:
            await conversation.send(b"hello")

        async def refuse(conversation: Conversation) -> None:
            assert await conversation.receive() == b"who?"
            raise RefusedError("too old")

        service = Service(conversations={"greet": greet, "refuse": refuse})
        async with offered(control, service) as channel:
            greeted = await channel.open("greet", deadline_s=PATIENCE_S)
            assert await greeted.receive() == b"hello"
            assert await greeted.receive() is None
            refused = await channel.open("refuse", deadline_s=PATIENCE_S)
            await refused.send(b"who?")
            with pytest.raises(RefusedError, match="too old"):
                await refused.receive()
            with pytest.raises(RefusedError, match="too old"):
                await refused.send(b"more")
            with pytest.raises(RefusedError, match=NO_METHOD):
                await (await channel.open("other", deadline_s=PATIENCE_S)).receive()

    @in_its_world
    async def test_handler_of_a_conversation_that_is_closed_is_cancelled(
        self, control: Control
    ) -> None:
        ended: asyncio.Queue[str] = asyncio.Queue()

        async def wait(conversation: Conversation) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.put_nowait(conversation.peer)

        ended = asyncio.Queue()
        async with offered(control, Service(conversations={"c": wait})) as channel:
            conversation = await channel.open("c", deadline_s=PATIENCE_S)
            conversation.close()
            assert await asyncio.wait_for(ended.get(), PATIENCE_S)
            await channel.open("c", deadline_s=PATIENCE_S)
            await channel.close()
            assert await asyncio.wait_for(ended.get(), PATIENCE_S)

    @in_its_world
    async def test_end_of_the_service_breaks_what_is_under_way(self, control: Control) -> None:
        async def wait(request: bytes) -> bytes:
            await asyncio.sleep(3600)
            return b""

        server = await control.serve(PLACE, Service({"m": wait}, {"c": echo}))
        channel = control.channel(server.address)
        conversation = await channel.open("c", deadline_s=PATIENCE_S)
        calling = asyncio.ensure_future(channel.call("m", b"", deadline_s=PATIENCE_S))
        await asyncio.sleep(0.3)
        await server.close()
        with pytest.raises(UnreachableError):
            await asyncio.wait_for(calling, PATIENCE_S)
        with pytest.raises(UnreachableError):
            await asyncio.wait_for(conversation.receive(), PATIENCE_S)
        with pytest.raises(UnreachableError):
            await conversation.send(b"x")
        await channel.close()

    @in_its_world
    async def test_service_that_closes_with_grace_answers_what_it_has_begun(
        self, control: Control
    ) -> None:
        begun = asyncio.Event()

        async def slow(request: bytes) -> bytes:
            begun.set()
            await asyncio.sleep(0.5)
            return b"done"

        server = await control.serve(PLACE, Service({"m": slow}))
        channel = control.channel(server.address)
        calling = asyncio.ensure_future(channel.call("m", b"", deadline_s=PATIENCE_S))
        await begun.wait()
        closing = asyncio.ensure_future(server.close(grace_s=30))
        assert await calling == b"done"
        await asyncio.wait_for(closing, PATIENCE_S)
        await channel.close()

    @in_its_world
    async def test_close_of_a_channel_fails_its_calls(self, control: Control) -> None:
        async def wait(request: bytes) -> bytes:
            await asyncio.sleep(3600)
            return b""

        async with offered(control, Service({"m": wait}, {"c": echo})) as channel:
            calling = asyncio.ensure_future(channel.call("m", b"", deadline_s=PATIENCE_S))
            conversation = await channel.open("c", deadline_s=PATIENCE_S)
            receiving = asyncio.ensure_future(conversation.receive())
            await asyncio.sleep(0.3)
            await channel.close()
            for waiting in (calling, receiving):
                with pytest.raises(UnreachableError):
                    await asyncio.wait_for(waiting, PATIENCE_S)

    @in_its_world
    async def test_too_much_at_once_is_refused(
        self, control: Control, certificates: Certificates
    ) -> None:
        has_refused = asyncio.Event()

        async def wait(request: bytes) -> bytes:
            await has_refused.wait()
            return b"done"

        service = Service({"m": wait}, {"c": echo}, calls_max=2, conversations_max=1)
        async with offered(control, service) as channel:
            calls = [
                asyncio.ensure_future(channel.call("m", b"", deadline_s=PATIENCE_S))
                for _ in range(3)
            ]
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            has_refused.set()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert answers.count(b"done") == 2
            (refused,) = [each for each in answers if isinstance(each, RefusedError)]
            assert refused.reason == BUSY
            first = await channel.open("c", deadline_s=PATIENCE_S)
            with pytest.raises(RefusedError, match=BUSY):
                await (await channel.open("c", deadline_s=PATIENCE_S)).receive()
            await first.send(b"still here")
            assert await first.receive() == b"still here"
            first.close()

    @in_its_world
    async def test_sender_waits_for_a_slow_receiver(self, control: Control) -> None:
        async def deaf(conversation: Conversation) -> None:
            await asyncio.sleep(3600)

        service = Service({"m": upper}, {"deaf": deaf})
        async with offered(control, service) as channel:
            conversation = await channel.open("deaf", deadline_s=PATIENCE_S)
            sent = 0

            async def send() -> None:
                nonlocal sent
                while True:
                    await conversation.send(bytes(MIB))
                    sent += 1

            sending = asyncio.ensure_future(send())
            before = -1
            while before < sent < 64:
                before = sent
                await asyncio.sleep(0.5)
            assert sent < 64
            # Others on the same channel do not wait.
            assert await channel.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
            sending.cancel()
            conversation.close()

    @in_its_world
    async def test_certificates_are_asked_for_on_both_sides(
        self, control: Control, certificates: Certificates
    ) -> None:
        ours, theirs = certificates.issue("coordinator"), certificates.issue("worker", "other")
        worker = certificates.issue("worker")
        server = await control.serve(PLACE, Service({"m": upper}), tls=ours)
        channel = control.channel(server.address, tls=worker)
        assert await channel.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
        await channel.close()
        for wrong in (theirs, None):
            channel = control.channel(server.address, tls=wrong)
            with pytest.raises((UnreachableError, DeadlineError)):
                await channel.call("m", b"a", deadline_s=5)
            await channel.close()
        await server.close()

    @in_its_world
    async def test_replaced_certificates_count_from_the_next_connection_on(
        self, control: Control, certificates: Certificates
    ) -> None:
        ours, worker = certificates.issue("coordinator"), certificates.issue("worker")
        new, follows = certificates.issue("coordinator", "x"), certificates.issue("worker", "x")
        server = await control.serve(PLACE, Service({"m": upper}, {"c": echo}), tls=ours)
        channel = control.channel(server.address, tls=worker)
        conversation = await channel.open("c", deadline_s=PATIENCE_S)
        for old, by in ((ours, new), (worker, follows)):
            certificates.replace(old.key, by=by.key)
            certificates.replace(old.certificate, by=by.certificate)
            certificates.replace(old.authority, by=by.authority)
        other = control.channel(server.address, tls=follows)
        assert await other.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
        assert await channel.call("m", b"a", deadline_s=PATIENCE_S) == b"A"
        await conversation.send(b"still here")
        assert await conversation.receive() == b"still here"
        for each in (channel, other):
            await each.close()
        await server.close()


async def upper(request: bytes) -> bytes:
    return upper_of(request)


def upper_of(request: bytes) -> bytes:
    return request.upper()


async def echo(conversation: Conversation) -> None:
    while (message := await conversation.receive()) is not None:
        await conversation.send(message)


class offered:  # noqa: N801 - used as a function
    """A channel to a service, both closed at the end."""

    def __init__(self, control: Control, service: Service) -> None:
        self._control = control
        self._service = service

    async def __aenter__(self) -> Any:
        self._server = await self._control.serve(PLACE, self._service)
        self._channel = self._control.channel(self._server.address)
        return self._channel

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()
        await self._server.close()
