"""Lives over an input with holes in its offsets, as a compacted topic has, and their crashes."""

from __future__ import annotations

from ripple.storage.store import DiskStore
from ripple.task.dead_letters.log import letters_in
from ripple.task.lifecycle import PartitionTask
from ripple.task.spec import TaskSpec
from ripple.testing import SimWorld, explore, sim_world
from tests.examples import EXAMPLES, THINNED
from tests.task.holes import EXPECTED, Compacted, live
from tests.task.lives import PLAN, ROWS, append, life, written


async def without_holes(world: SimWorld) -> PartitionTask[TaskSpec]:
    append(world)
    one = life(world)
    await one.run()
    return one


def test_records_with_holes_between_them_give_what_they_give_without() -> None:
    world, other = sim_world(), sim_world()
    one = world.loop.run_until_complete(live(world))
    plain = other.loop.run_until_complete(without_holes(other))
    end = Compacted(7)
    assert one.engine.cut == {"trades": end.end}
    assert one.engine.digest == plain.engine.digest
    counters = one.engine.counters
    assert (counters.consumed, counters.dead_lettered) == (len(ROWS) + 1, 1)
    assert counters.applied + counters.very_late + counters.dead_lettered == counters.consumed
    assert one.report.events == len(ROWS) + 1
    found = world.loop.run_until_complete(letters_in(DiskStore(world.disk), PLAN.name))
    assert [letter.offset for letter in found.letters] == [end.bad]


async def crashed(world: SimWorld, seed: int) -> None:
    """Live, and hold what is left to a life that nothing has happened to."""
    one = await live(world, block_rows=3 + seed % 9)
    assert {
        "written": written(world),
        "counters": one.engine.counters,
        "cut": one.engine.cut,
    } == EXPECTED
    letters = (await letters_in(DiskStore(world.disk), PLAN.name)).letters
    assert [letter.offset for letter in letters] == [Compacted(7).bad]


def test_crashes_at_random_change_nothing() -> None:
    report = explore(crashed, seeds=range(40 * EXAMPLES // THINNED))
    assert report.lives > 50
