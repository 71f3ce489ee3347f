"""The simulated control port under the network's faults."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ripple.testing import SimCluster, SimWorld, explore, on_cluster
from ripple.world.control import (
    KEEPALIVE_S,
    KEEPALIVE_TIMEOUT_S,
    ControlError,
    Conversation,
    DeadlineError,
    Service,
    UnreachableError,
)
from tests.examples import EXAMPLES, THINNED
from tests.world.clusters import idle, on, simulate, simulated
from tests.world.control_contract import upper

SILENCE_S = 2 * (KEEPALIVE_S + KEEPALIVE_TIMEOUT_S)


class Talk:
    """Machine ``a``, which calls ``b``, and what the handlers of ``b`` saw."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.a = cluster.host("a")
        self.b = cluster.host("b")
        self.ended: list[float] = []
        self.called = 0

    async def begin(self) -> None:
        self.b.start(self.serve)
        self.a.start(idle)
        await asyncio.sleep(1)
        self.channel = self.a.world.control.channel("b:9000")

    async def serve(self, world: SimWorld) -> None:
        async def count(request: bytes) -> bytes:
            self.called += 1
            return request

        async def converse(conversation: Conversation) -> None:
            try:
                while (message := await conversation.receive()) is not None:
                    await conversation.send(message)
            finally:
                self.ended.append(self.cluster.loop.time())

        await world.control.serve("b:9000", Service({"count": count}, {"c": converse}))
        await asyncio.Event().wait()

    async def call(self, deadline_s: float = 5.0) -> bytes:
        return await on(self.a, self.channel.call("count", b"x", deadline_s=deadline_s))

    async def open(self) -> Any:
        return await on(self.a, self.channel.open("c", deadline_s=5))


@simulated
async def test_call_across_a_cut_meets_its_deadline_and_may_have_been_carried_out(
    cluster: SimCluster,
) -> None:
    talk = Talk(cluster)
    await talk.begin()
    await talk.call()
    cluster.network.cut_one_way("b", "a")
    started = cluster.loop.time()
    with pytest.raises(DeadlineError):
        await talk.call()
    assert cluster.loop.time() - started < 5.1
    assert talk.called == 2
    cluster.network.heal()
    await asyncio.sleep(30)
    assert await talk.call() == b"x"


@pytest.mark.parametrize("way", ["a>b", "b>a", "both", "vanished"])
@simulated
async def test_silent_conversation_is_found_out_by_both_sides(
    cluster: SimCluster, way: str
) -> None:
    talk = Talk(cluster)
    await talk.begin()
    conversation = await talk.open()
    await asyncio.sleep(60)  # that nobody says anything is no silence
    await on(talk.a, conversation.send(b"x"))
    assert await on(talk.a, conversation.receive()) == b"x"
    started = cluster.loop.time()
    if way == "vanished":
        talk.b.switch_off()
    elif way == "both":
        cluster.network.cut("a", "b")
    else:
        cluster.network.cut_one_way(way[0], way[2])
    with pytest.raises(UnreachableError):
        await on(talk.a, conversation.receive(), SILENCE_S)
    if way != "vanished":
        await asyncio.sleep(SILENCE_S)
        assert talk.ended
        assert talk.ended[0] - started < SILENCE_S


@simulated
async def test_killed_service_is_known_at_once_and_found_again(cluster: SimCluster) -> None:
    talk = Talk(cluster)
    await talk.begin()
    conversation = await talk.open()
    talk.b.kill()
    with pytest.raises(UnreachableError):
        await on(talk.a, conversation.receive(), 1)
    with pytest.raises(UnreachableError):
        await talk.call()
    talk.b.restart()
    await asyncio.sleep(1)
    assert await talk.call() == b"x"


@simulated
async def test_handlers_of_a_killed_caller_are_cancelled(cluster: SimCluster) -> None:
    talk = Talk(cluster)
    await talk.begin()
    await talk.open()
    talk.a.kill()
    await asyncio.sleep(1)
    assert talk.ended


@simulated
async def test_paused_service_is_silent_and_keeps_its_conversations_if_resumed_soon(
    cluster: SimCluster,
) -> None:
    talk = Talk(cluster)
    await talk.begin()
    conversation = await talk.open()
    talk.b.pause()
    with pytest.raises(DeadlineError):
        await talk.call()
    talk.b.resume()
    await on(talk.a, conversation.send(b"x"))
    assert await on(talk.a, conversation.receive()) == b"x"
    talk.b.pause()
    with pytest.raises(UnreachableError):
        await on(talk.a, conversation.receive(), SILENCE_S)


def test_bug_of_a_handler_fails_the_run() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        async def fail(request: bytes) -> bytes:
            raise KeyError("a bug")

        async def main(world: SimWorld) -> None:
            await world.control.serve("b:1", Service({"m": fail}))
            await world.control.channel("b:1").call("m", b"", deadline_s=5)

        cluster.host("b").start(main)
        await cluster.host("b").ended()

    with pytest.raises(KeyError, match="a bug"):
        simulate(scenario)


@on_cluster
async def answers_in_the_end(cluster: SimCluster, seed: int) -> None:
    """Under any faults a call is answered as it was asked, or fails; healed, all are answered."""

    async def serve(world: SimWorld) -> None:
        await world.control.serve("b:1", Service({"m": upper}))
        await asyncio.Event().wait()

    async def ask(world: SimWorld) -> None:
        channel = world.control.channel("b:1")
        answered = 0
        while answered < 20:
            request = b"%d of %d" % (answered, seed)
            try:
                assert await channel.call("m", request, deadline_s=3) == request.upper()
                answered += 1
            except ControlError:
                await world.clock.sleep(1)
        await channel.close()

    for second in range(3600):
        for name, program in (("b", serve), ("a", ask)):
            if not cluster.host(name).is_running:
                if second > 60 and name == "a":
                    return
                cluster.host(name).start(program)
        await asyncio.sleep(1)
        if second == 60:
            cluster.heal()
    raise AssertionError("not answered in an hour without faults")


def test_calls_are_answered_right_or_fail_under_any_faults() -> None:
    report = explore(answers_in_the_end, seeds=range(25 * EXAMPLES // THINNED))
    assert report.landed["net_reset"]
    assert report.landed["net_vanish"]
