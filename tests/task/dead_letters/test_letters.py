"""Every refused record is kept once, whatever crashes, with what is needed to retry it."""

from __future__ import annotations

import asyncio

import numpy as np
import pyarrow as pa
import pytest

from ripple.connectors import letter
from ripple.connectors.letter import QUARANTINE
from ripple.core.errors import InputError
from ripple.engine.machine import RejectedRow
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.storage.store import DiskStore
from ripple.task.dead_letters import log as dead_letters
from ripple.task.dead_letters.log import letters_in
from ripple.task.drive import refused
from ripple.testing import SimulationError, SimWorld, enumerate_crashes
from ripple.world import Disk, LiveDisk
from tests.examples import EXAMPLES, SAMPLED, THINNED
from tests.task.letter_places import kept, owned, simulated

RECORDS = 40
BATCH_ROWS = 10


def offsets_of(disk: Disk) -> list[int]:
    return [one.offset for one in kept(disk, "vwap")]


def bad(offset: int, step: str | None = None) -> Rejected:
    return Rejected(offset, None, "price is empty", b"AAPL,,1", step)


def test_letter_has_all_that_was_known(tmp_path) -> None:
    records = pa.record_batch({"symbol": ["AAPL", "GOOG", "MSFT"], "price": [1.5, -2.0, 3.0]})
    source_rejected = Rejected(11, 4, "price is empty", b"\xffAMZN,,1")
    batch = Batch(records, 14, (source_rejected,))
    failed = refused(batch, [RejectedRow(1, "notional", "the result is negative")])
    with owned(LiveDisk(tmp_path), "vwap") as (log, *_):
        log.write("trades", [*failed, source_rejected], batch)
    by_source, by_step = kept(LiveDisk(tmp_path), "vwap")
    assert (by_source.offset, by_source.line_number, by_source.step) == (11, 4, None)
    assert by_source.raw == b"\xffAMZN,,1"
    with pytest.raises(InputError, match="only its text"):
        by_source.row()
    assert (by_step.input, by_step.offset, by_step.line_number) == ("trades", 12, None)
    assert (by_step.pipeline, by_step.version) == ("vwap", "v1")
    assert by_step.cause == "notional: the result is negative"
    assert by_step.raw == b'{"symbol": "GOOG", "price": -2.0}'
    assert by_step.row().equals(records.slice(1, 1))
    assert dict(log.counts) == {"price is empty": 1, "notional: the result is negative": 1}


def test_words_that_are_not_utf8_do_not_end_the_life(tmp_path) -> None:
    records = pa.record_batch({"symbol": ["AAPL"], "price": [float("nan")]})
    failed = refused(Batch(records, 1), [RejectedRow(0, "m", "KeyError: '\ud800'")])
    with owned(LiveDisk(tmp_path), "vwap") as (log, *_):
        assert log.write("trades", failed, Batch(records, 1)) == 1
    [found] = kept(LiveDisk(tmp_path), "vwap")
    assert found.reason == "KeyError: '\\ud800'"
    assert found.raw == b'{"symbol": "AAPL", "price": "NaN"}'


def test_next_life_keeps_only_what_is_new(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for offsets, new in (([3, 5], 2), ([3, 5, 9], 1)):
        with owned(disk, "vwap") as (log, *_):
            log.begin({"trades": 0})
            assert log.write("trades", map(bad, offsets)) == new
            assert log.write("quotes", [bad(offsets[-1])]) == 1
    assert [(one.input, one.offset) for one in kept(disk, "vwap")] == [
        *(("trades", 3), ("trades", 5), ("quotes", 5)),
        *(("trades", 9), ("quotes", 9)),
    ]


@pytest.mark.parametrize("is_gone", [True, False])
def test_letters_that_are_damaged_are_written_again_where_their_records_come_again(
    tmp_path, is_gone: bool
) -> None:
    disk = LiveDisk(tmp_path)
    for offset in (3, 7, 9):
        with owned(disk, "vwap") as (log, *_):
            log.write("trades", [bad(offset)])
    objects = sorted(tmp_path.glob("vwap/00000/letters/*.journal"))
    damaged = objects[3]  # each owner begins with an empty one
    assert b"AAPL" in damaged.read_bytes()
    if is_gone:
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    found = asyncio.run(letters_in(DiskStore(disk), "vwap"))
    assert [one.offset for one in found.letters] == [3, 9]
    (said,) = found.damage
    assert damaged.name in said
    with owned(disk, "vwap") as (log, *_):
        assert log.damage == (said,)  # who dies before all is replayed leaves it so
    with owned(disk, "vwap") as (log, flush, place):
        assert log.damage == (said,)
        log.begin({"trades": 5})
        assert log.write("trades", map(bad, [7, 9, 11])) == 2
        place.mend()
        flush()
    assert sorted(offsets_of(disk)) == [3, 7, 9, 11]  # of which nothing is damaged any more
    with owned(disk, "vwap") as (log, *_):
        assert log.write("trades", map(bad, [7, 9, 11])) == 0


def test_new_version_judges_anew_from_where_it_reads(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    with owned(disk, "vwap") as (log, *_):
        log.write("trades", map(bad, [3, 5, 9]))
    for new in (2, 0):
        with owned(disk, "vwap", version="v2") as (log, *_):
            log.begin({"trades": 5})
            assert log.write("trades", map(bad, [5, 7])) == new
    assert [(one.offset, one.version) for one in kept(disk, "vwap")] == [
        *((3, "v1"), (5, "v2"), (7, "v2"))
    ]


def test_quarantined_record_is_kept_once_however_late_it_comes(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for given, new in (([bad(3), bad(9)], 2), ([bad(3), bad(5, QUARANTINE)], 1)):
        with owned(disk, "vwap") as (log, *_):
            assert log.write("trades", given) == new
    with owned(disk, "vwap") as (log, *_):
        assert log.write("trades", [bad(3), bad(5, QUARANTINE), bad(9)]) == 0
    assert offsets_of(disk) == [3, 9, 5]
    with owned(disk, "vwap", version="v2") as (log, *_):
        log.begin({"trades": 4})
        assert log.write("trades", [bad(5, QUARANTINE)]) == 1
    assert offsets_of(disk) == [3, 5]


def test_letter_that_comes_after_a_later_one_is_refused(tmp_path) -> None:
    with owned(LiveDisk(tmp_path), "vwap") as (log, *_):
        log.write("trades", [bad(7), bad(2)])  # of one batch: any order
        with pytest.raises(ValueError, match="comes after a later one"):
            log.write("trades", [bad(5)])


def test_long_records_are_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dead_letters, "APPEND_BYTES_MAX", 3 * RAW_BYTES_MAX)
    text = "x" * (letter.RECORD_BYTES_MAX + 1)
    records = pa.record_batch({"text": [text, *("short" for _ in range(9))]})
    batch = Batch(records, 10)
    with owned(LiveDisk(tmp_path), "vwap") as (log, *_):
        long_reason = "r" * 5000
        failed = [RejectedRow(at, "s", long_reason) for at in range(10)]
        log.write("a", refused(batch, failed), batch)
        assert [len(rows) for rows in log._box._waiting] == [2] * 5
    first, *rest = kept(LiveDisk(tmp_path), "vwap")
    assert first.record is None
    assert len(first.raw) == RAW_BYTES_MAX
    assert len(first.reason) == letter.REASON_CHARACTERS_MAX
    assert [one.row().column("text").to_pylist() for one in rest] == [["short"]] * 9


# --- crashes ---


def is_bad(offset: int) -> bool:
    return offset % 4 == 1 or offset in (20, 22)


def life(world: SimWorld, seed: int) -> None:
    """Consume RECORDS, batch by batch; the witness is a sink that committed a cut.

    Every other life starts from the sink's cut, the others from the beginning.
    """
    lives = world.witness["lives"] = world.witness.get("lives", 0) + 1
    committed = world.witness.get("committed", 0)
    cut = committed if lives % 2 else 0
    with owned(world.disk, "vwap", **simulated(world)) as (log, flush, _):
        log.begin({"trades": cut})
        for first in range(cut, RECORDS, BATCH_ROWS):
            offsets = np.arange(first, first + BATCH_ROWS)
            rejected = [bad(int(offset)) for offset in offsets if is_bad(offset)]
            log.write("trades", rejected)
            if first % 20 == 0:
                if world.guards("sync_before_commit"):
                    log.sync()
                    flush()
                world.witness["committed"] = max(committed, first + BATCH_ROWS)
    world.witness["committed"] = RECORDS


def kept_once(world: SimWorld, seed: int) -> None:
    """What a person finds who looks after a crash: all up to the commit, nothing twice."""
    found = [one.offset for one in kept(world.disk, "vwap", run=world.loop.run_until_complete)]
    expected = [offset for offset in range(RECORDS) if is_bad(offset)]
    assert found == expected[: len(found)]
    committed = world.witness.get("committed", 0)
    assert len(found) >= sum(map(is_bad, range(committed)))


def test_letters_are_kept_once_whatever_crashes() -> None:
    report = enumerate_crashes(life, check=kept_once, pairs=20 * EXAMPLES // SAMPLED, every=THINNED)
    assert report.lives > report.runs > 50


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("safeguard", ["letter_once", "sync_before_commit", "fsync_file"])
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    with pytest.raises(SimulationError):
        enumerate_crashes(life, check=kept_once, pairs=40, without=(safeguard,))
