"""A planned move, with a death at each of its steps: exactly one owner is left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ripple.control.assignment import Phase
from ripple.core.events import Restored
from tests.examples import EXAMPLES
from tests.worker import trials
from tests.worker.moves import MOVED, STEPS, Move
from tests.worker.seen import Seen, Story, run_story

SETTLED_S = 60.0


def parties(move: Move) -> dict[str, list[str]]:
    both = list(move.seen.scene.coordinators)
    return {
        "the owner": [move.former],
        "the next owner": [move.next],
        "one coordinator": both[:1],
        "both coordinators": both,
        "both owners": [move.former, move.next],
    }


WHO = ("the next owner", "both owners", "one coordinator", "the owner", "both coordinators")


@pytest.mark.parametrize("step", STEPS)
def test_death_at_any_step_of_a_move_leaves_one_owner(step: str) -> None:
    """By default one of them dies at each step, another at the next one; all in ``make wide``."""
    first = list(STEPS).index(step) % len(WHO)
    for who in WHO[first : first + 1] if EXAMPLES == 1 else WHO:
        run_story(dying(who, step), trials.windows, coordinators=2, alongside=True)


def test_later_stage_whose_owner_died_writes_only_what_readers_lack() -> None:
    """I16, of the partitions that its owner had beside the one that moves."""
    story = dying("the owner", "it is to move")
    run_story(story, trials.totals, coordinators=2, partitions=2, alongside=True)


def dying(who: str, step: str) -> Story:
    async def story(seen: Seen) -> None:
        move = Move(seen)
        victims, hit = parties(move)[who], asyncio.Event()

        def strike() -> None:
            for name in victims:
                seen.cluster.host(name).kill()
            hit.set()

        def look() -> None:
            if not looked and STEPS[step](move):
                looked.append(True)
                seen.cluster.loop.call_soon(strike)

        looked: list[bool] = []
        move.begin()
        seen.cluster.always(look)
        await asyncio.wait_for(hit.wait(), SETTLED_S)
        if len(victims) == 1:  # whoever is left does it alone
            await seen.until(lambda: is_live(seen), f"nobody has it: {step}, {who}")

    return story


def is_live(seen: Seen) -> bool:
    """Return whether somebody who runs owns the partition, and is live."""
    share = seen.shares[MOVED]
    workers = [
        worker
        for worker in seen.scene.workers.values()
        if worker.supervisor is not None and seen.cluster.host(worker.name).is_running
    ]
    live: set[Any] = {pair for one in workers for pair in one.supervisor.report().live}  # type: ignore[union-attr]
    return (MOVED, share.since) in live and share.phase is not Phase.SWITCHING


def test_owner_goes_on_with_its_state_when_the_next_one_fails() -> None:
    """Nothing is restored: what the owner was when it gave way is gone on with."""

    async def story(seen: Seen) -> None:
        move, looked = Move(seen), list[bool]()

        def look() -> None:
            if not looked and move.is_switching():
                looked.append(True)
                seen.cluster.loop.call_soon(seen.cluster.host(move.next).kill)

        move.begin()
        seen.cluster.always(look)
        await seen.until(lambda: bool(looked), "it does not move")
        since = seen.shares[MOVED].since
        await seen.until(
            lambda: seen.owner(MOVED) == move.former and seen.shares[MOVED].since > since,
            "its owner does not get it back",
        )
        await seen.until(lambda: is_live(seen), "its owner does not go on")
        restored = [
            event
            for _, process, number, _, event in seen.said[move.count :]
            if number == MOVED and process.startswith(move.former) and isinstance(event, Restored)
        ]
        assert [event.checkpoint for event in restored] == [None]
        assert any(restored[0].start.values()), "it began anew"
        assert restored[0].written_ns is not None, "how old its checkpoint is was forgotten"

    run_story(story, trials.windows, alongside=True)
