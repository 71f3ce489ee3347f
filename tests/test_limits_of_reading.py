"""What a writer writes its reader reads: both have the same limit, and the writer says it first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest

import coordinator.service.archive
import ripple.connectors.files.text.cut_record
import ripple.storage.checkpoint.origin
import ripple.storage.fenced.chain
import ripple.storage.fenced.journal
from coordinator.decisions.views import Observation, View
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import CutRecord, Owner, read, write
from ripple.core.errors import LimitError
from ripple.storage.checkpoint.origin import Origin, begin, origin_in
from ripple.storage.fenced import Chain, Entry, Journal
from ripple.storage.store import MemoryStore
from ripple.testing import SimWorld, sim_world
from tests.storage.fenced.text import Text

# 128 partitions, and two later stages of 8: the offsets by path are half a megabyte and more.
CUT = {
    f"{a}/{b}/us-equities-trades/{c}": 10**9 for a in range(8) for b in range(8) for c in range(128)
}


async def through_a_chain(size: int, _: SimWorld) -> None:
    chain = Chain(MemoryStore(), "c/", Text())
    entry = Entry(1, "me", "", "x" * size, chain.codec)
    await chain.create(entry)
    assert await chain.get(1) == entry


async def through_a_journal(size: int, world: SimWorld) -> None:
    journal = Journal(world.store, "j/")
    await journal.open(1, world.random)
    await journal.add(b"x" * size)
    assert (await journal.read())[-1].data == b"x" * size


async def through_a_cut_record(size: int, world: SimWorld) -> None:
    record = CutRecord(Owner("p", "o"), ("x" * size,))
    write(world.disk, "o.cut", record)
    assert read(world.disk, "o.cut") == record


async def through_an_origin(size: int, _: SimWorld) -> None:
    store, origin = MemoryStore(), Origin("x" * (size // 2), ())  # it is there twice
    assert await begin(store, "p", origin) == origin
    assert await origin_in(store, "p") == origin


async def through_a_view(size: int, world: SimWorld) -> None:
    mine, theirs = (
        coordinator.service.archive.Archive(world.store, world.clock, who) for who in "ab"
    )
    seen = Observation(0, was_heard=True)
    view = View("a", 1, tuple(((f"w{n}", 1), seen) for n in range(100_000, 100_000 + size // 15)))
    await mine.write_view(view)
    assert await theirs.read_views() == (view,)


@pytest.mark.parametrize(
    ("module", "limit", "through"),
    [
        (ripple.storage.fenced.chain, "BYTES_MAX", through_a_chain),
        (ripple.storage.fenced.journal, "OBJECT_BYTES_MAX", through_a_journal),
        (ripple.connectors.files.text.cut_record, "RECORD_BYTES_MAX", through_a_cut_record),
        (ripple.storage.checkpoint.origin, "BYTES_MAX", through_an_origin),
        (coordinator.service.archive, "VIEW_BYTES_MAX", through_a_view),
    ],
)
def test_a_writer_refuses_exactly_what_its_reader_would(
    module: ModuleType,
    limit: str,
    through: Callable[[int, SimWorld], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, limit, 2000)
    refused = 0
    for size in range(1500, 2001):
        try:
            world = sim_world()
            world.loop.run_until_complete(through(size, world))
        except LimitError as error:
            refused += 1
            assert "would take" in str(error), "the writer should have refused it"  # noqa: PT017
        else:
            assert not refused
    assert 0 < refused < 501


async def test_a_cut_of_8192_paths_is_read_back() -> None:
    assert len(CUT) == 8192
    disk = sim_world().disk
    record = CutRecord(Owner("p", "o"), ("k",), Commit(CUT, "0" * 16))
    write(disk, "o.cut", record)
    assert read(disk, "o.cut") == record
    chain = Chain(MemoryStore(), "c/", Text())
    entry = Entry(1, "me", "", "x" * 2_000_000, chain.codec)  # four checkpoints of such cuts
    assert await chain.create(entry) == entry
    assert await chain.get(1) == entry
