"""Named faults of one partition: a crash at just that moment, and what comes of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from ripple.engine.machine import Engine
from ripple.model.schema.columns import records_of
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import DiskStore
from ripple.testing import Marker, repeat, sim_world
from ripple.testing.sim.disk import CAPACITY_BYTES
from ripple.world import StoreError
from tests.storage.checkpoint.kit import fed_engine, feed
from tests.task import scenarios

# Checkpoints on a disk, and in an object store beside which the source is still written.
ON_DISK, IN_STORE = 0, 6
COMMIT = r"rename \S+/output.cut.tmp"
BLOB = r"(append|store_put) \S*/state/"
ENTRY = r"(link \S+|store_put|create) \S*/manifest/\d+\.json"


def effects(seed: int, plan: str = "", life: int = 0) -> list[tuple[int, str]]:
    """Return the effects of a life by number, each with what it is done to."""
    lines = repeat(scenarios.running, seed=seed, plan=plan).trace.lines
    found = [re.match(rf"{life}\.(\d+) (.*)", line) for line in lines]
    return [(int(one.group(1)), one.group(2)) for one in found if one is not None]


def numbers(pattern: str, seed: int) -> list[int]:
    """Return the effects of an undisturbed run that are of a kind."""
    found = [number for number, effect in effects(seed) if re.match(pattern, effect)]
    assert found, pattern
    return found


def survives(seed: int, *faults: str) -> None:
    """Let these faults strike; outputs, letters and digests must be those of a calm run."""
    done = repeat(scenarios.running, seed=seed, plan=" ".join(faults))
    if done.error is not None:
        raise done.error
    assert done.lives == len(faults) + 1, "not every fault has struck"


def commits(seed: int) -> Iterator[int]:
    """Yield the first effect after the commit of the last output, before each checkpoint."""
    listed = [(n, effect) for n, effect in effects(seed) if "read" not in effect.split()[0]]
    for blob in (at for at, (_, effect) in enumerate(listed) if re.match(BLOB, effect)):
        before = [at for at, (_, effect) in enumerate(listed[:blob]) if re.match(COMMIT, effect)]
        yield listed[before[-1] + 2][0]  # the folder is synced, too


@pytest.mark.parametrize("seed", [ON_DISK, IN_STORE])
def test_crash_after_commit_before_checkpoint(seed: int) -> None:
    for number in sorted(set(commits(seed)))[:2]:
        survives(seed, f"0.{number}:kill_before:0")
        survives(seed, f"0.{number}:power_before:0")


@pytest.mark.parametrize("seed", [ON_DISK, IN_STORE])
def test_crash_mid_checkpoint_upload(seed: int) -> None:
    blobs = numbers(BLOB, seed)
    kind = "torn" if seed == ON_DISK else "after"
    for number in (blobs[0], blobs[-1]):
        survives(seed, f"0.{number}:kill_{kind}:1")
        survives(seed, f"0.{number}:power_{kind}:7")


@pytest.mark.parametrize("seed", [ON_DISK, IN_STORE])
def test_crash_between_blob_and_manifest(seed: int) -> None:
    blobs, entries = numbers(BLOB, seed), numbers(ENTRY, seed)
    between = [next(n for n in entries if n > blob) for blob in blobs if blob < entries[-1]]
    for number in sorted(set(between))[:2]:
        survives(seed, f"0.{number}:kill_before:0")
        survives(seed, f"0.{number}:power_before:0")


@pytest.mark.parametrize("seed", [ON_DISK, IN_STORE])
def test_crash_during_muted_replay_twice(seed: int) -> None:
    """The second and the third life die before they have written anything."""
    committed = numbers(COMMIT, seed)
    plan = [f"0.{committed[len(committed) // 2]}:kill_before:0"]
    for life in (1, 2):
        listed = effects(seed, " ".join(plan), life)
        written = next(n for n, effect in listed if re.match(r"append \S*(csv|/\d+\.log)", effect))
        own = [n for n, effect in listed if n < written and not re.search(r"^\S*read", effect)]
        plan.append(f"{life}.{own[-1]}:kill_before:0")
    survives(seed, *plan)


def test_late_events_same_verdict_on_replay() -> None:
    """Whatever the batches: the verdict is of the events before in the same input."""
    plan = scenarios.pipeline(scenarios.Tumbling(50)).plan()
    rows = [one for one in scenarios.events(80) if not isinstance(one, Marker)]

    def counted(sizes: Iterator[int], restart_at: int | None) -> tuple[object, object]:
        engine, at = Engine(plan), 0
        for size in sizes:
            part = rows[at : at + size]
            if not part:
                break
            at += len(part)
            engine.apply(plan.source.name, records_of(part, plan.source.fields), at)
            if restart_at is not None and at >= restart_at:
                engine.stabilize()
                engine, restart_at = Engine.restore(plan, engine.snapshot()), None
        engine.stabilize()
        return engine.counters.as_dict(), engine.digest

    whole = counted(itertools.repeat(80), None)
    counters = whole[0]
    assert isinstance(counters, dict)
    assert counters["mildly_late"]
    assert counters["very_late"]
    for sizes in ([1], [7], [3, 11]):
        for restart_at in (None, 1, 40):
            assert counted(itertools.cycle(sizes), restart_at) == whole


async def test_enospc_keeps_last_good() -> None:
    world = sim_world()
    checkpoints = Checkpoints(DiskStore(world.disk, world.random), "p")
    owner = await checkpoints.claim(world.clock, world.random)
    engine = fed_engine(3, 100)
    await owner.write(engine.snapshot())
    good = await checkpoints.latest()
    used = sum(map(len, world.disk.image().values()))
    feed(engine, 3, 1000)
    for left in (0, 10, 200, 1000):
        world.disk.capacity_bytes = used + left
        with pytest.raises(StoreError, match="no space left"):
            await owner.write(engine.snapshot())
        assert await checkpoints.latest() == good
        assert await checkpoints.verify() == ()
    world.disk.capacity_bytes = CAPACITY_BYTES
    await owner.write(engine.snapshot())
    newest = await checkpoints.latest()
    assert newest.snapshot.cut == engine.cut
