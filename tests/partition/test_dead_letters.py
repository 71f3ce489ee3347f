"""Every refused record is kept once, whatever crashes, with what is needed to retry it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ripple.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.engine import RejectedRow
from ripple.errors import InputError
from ripple.log import LogDamagedError, LogSettings, PartitionReader, Topic
from ripple.partition import letter
from ripple.partition import letters as dead_letters
from ripple.partition.drive import refused
from ripple.partition.letter import QUARANTINE
from ripple.partition.letter_box import LetterTopic, letters_path
from ripple.partition.letters import DeadLetterLog, read_letters
from ripple.testing import SimulationError, SimWorld, enumerate_crashes
from ripple.world import Disk, LiveClock, LiveDisk
from tests.examples import EXAMPLES, THINNED

PATH = letters_path("vwap")
RECORDS = 40
BATCH_ROWS = 10


def log_of(disk: Disk, version: str = "v1") -> DeadLetterLog:
    return DeadLetterLog(
        LetterTopic(disk, PATH, LiveClock()), pipeline="vwap", version=version, clock=LiveClock()
    )


def offsets_of(disk: Disk) -> list[int]:
    return [one.offset for one in read_letters(disk, PATH)]


def bad(offset: int, step: str | None = None) -> Rejected:
    return Rejected(offset, None, "price is empty", b"AAPL,,1", step)


def test_letter_has_all_that_was_known(tmp_path) -> None:
    records = pa.record_batch({"symbol": ["AAPL", "GOOG", "MSFT"], "price": [1.5, -2.0, 3.0]})
    source_rejected = Rejected(11, 4, "price is empty", b"\xffAMZN,,1")
    batch = Batch(records, 14, (source_rejected,))
    failed = refused(batch, [RejectedRow(1, "notional", "the result is negative")])
    log = log_of(LiveDisk(tmp_path))
    log.write("trades", [*failed, source_rejected], batch)
    log.close()
    by_source, by_step = read_letters(LiveDisk(tmp_path), PATH)
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
    log = log_of(LiveDisk(tmp_path))
    assert log.write("trades", failed, Batch(records, 1)) == 1
    log.close()
    [kept] = read_letters(LiveDisk(tmp_path), PATH)
    assert kept.reason == "KeyError: '\\ud800'"
    assert kept.raw == b'{"symbol": "AAPL", "price": "NaN"}'


def test_next_life_keeps_only_what_is_new(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for offsets, new in (([3, 5], 2), ([3, 5, 9], 1)):
        log = log_of(disk)
        log.begin({"trades": 0})
        assert log.write("trades", map(bad, offsets)) == new
        assert log.write("quotes", [bad(offsets[-1])]) == 1
        log.close()
    assert [(one.input, one.offset) for one in read_letters(disk, PATH)] == [
        *(("trades", 3), ("trades", 5), ("quotes", 5)),
        *(("trades", 9), ("quotes", 9)),
    ]


@pytest.mark.parametrize("is_closed", [True, False])
def test_letters_that_are_gone_are_told_to_everybody(tmp_path, is_closed: bool) -> None:
    """Whether the life before has ended in good order or was killed after a commit."""
    disk = LiveDisk(tmp_path)
    log = log_of(disk)
    log.write("trades", [bad(3), bad(7)])
    log.sync()
    if is_closed:
        log.close()
    else:
        log._box._writer._locks.release()
    for path in tmp_path.glob("**/0/*.log"):
        path.unlink()
    with pytest.raises(
        LogDamagedError, match=r"dead-letters.topic/0/0+\.log .*up to 2 were durable"
    ):
        log_of(disk)
    with pytest.raises(LogDamagedError, match="up to 2 were durable"):
        offsets_of(disk)


def test_new_version_judges_anew_from_where_it_reads(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    log = log_of(disk)
    log.write("trades", map(bad, [3, 5, 9]))
    log.close()
    for new in (2, 0):
        log = log_of(disk, "v2")
        log.begin({"trades": 5})
        assert log.write("trades", map(bad, [5, 7])) == new
        log.close()
    assert [(one.offset, one.version) for one in read_letters(disk, PATH)] == [
        *((3, "v1"), (5, "v2"), (7, "v2"))
    ]


def test_quarantined_record_is_kept_once_however_late_it_comes(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for given, new in (([bad(3), bad(9)], 2), ([bad(3), bad(5, QUARANTINE)], 1)):
        log = log_of(disk)
        assert log.write("trades", given) == new
        log.close()
    log = log_of(disk)
    assert log.write("trades", [bad(3), bad(5, QUARANTINE), bad(9)]) == 0
    log.close()
    assert offsets_of(disk) == [3, 9, 5]
    log = log_of(disk, "v2")
    log.begin({"trades": 4})
    assert log.write("trades", [bad(5, QUARANTINE)]) == 1
    log.close()
    assert offsets_of(disk) == [3, 5]


def test_letter_that_comes_after_a_later_one_is_refused(tmp_path) -> None:
    log = log_of(LiveDisk(tmp_path))
    log.write("trades", [bad(7), bad(2)])  # of one batch: any order
    with pytest.raises(ValueError, match="comes after a later one"):
        log.write("trades", [bad(5)])


def test_long_records_are_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dead_letters, "APPEND_BYTES_MAX", 3 * RAW_BYTES_MAX)
    text = "x" * (letter.RECORD_BYTES_MAX + 1)
    records = pa.record_batch({"text": [text, *("short" for _ in range(9))]})
    batch = Batch(records, 10)
    log = log_of(LiveDisk(tmp_path))
    long_reason = "r" * 5000
    log.write("a", refused(batch, [RejectedRow(at, "s", long_reason) for at in range(10)]), batch)
    log.close()
    with PartitionReader(Topic.open(LiveDisk(tmp_path), PATH), 0) as reader:
        assert [entry.span for entry in reader.read() if isinstance(entry, Batch)] == [2] * 5
    first, *rest = read_letters(LiveDisk(tmp_path), PATH)
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
    settings = LogSettings(sync_appends=0, segment_bytes_max=3000)
    box = LetterTopic(world.disk, PATH, world.clock, settings=settings, guards=world.guards)
    log = DeadLetterLog(box, pipeline="vwap", version="v1", clock=world.clock, guards=world.guards)
    lives = world.witness["lives"] = world.witness.get("lives", 0) + 1
    committed = world.witness.get("committed", 0)
    cut = committed if lives % 2 else 0
    log.begin({"trades": cut})
    for first in range(cut, RECORDS, BATCH_ROWS):
        offsets = np.arange(first, first + BATCH_ROWS)
        rejected = [bad(int(offset)) for offset in offsets if is_bad(offset)]
        log.write("trades", rejected)
        if first % 20 == 0:
            if world.guards("sync_before_commit"):
                log.sync()
            world.witness["committed"] = max(committed, first + BATCH_ROWS)
    log.close()
    world.witness["committed"] = RECORDS


def kept_once(world: SimWorld, seed: int) -> None:
    """What a person finds who looks after a crash: all up to the commit, nothing twice."""
    if not world.disk.exists(f"{PATH}/topic"):
        assert not world.witness.get("committed")
        return
    found = offsets_of(world.disk)
    expected = [offset for offset in range(RECORDS) if is_bad(offset)]
    assert found == expected[: len(found)]
    committed = world.witness.get("committed", 0)
    assert len(found) >= sum(map(is_bad, range(committed)))


def test_letters_are_kept_once_whatever_crashes() -> None:
    report = enumerate_crashes(life, check=kept_once, pairs=20 * EXAMPLES, every=THINNED)
    assert report.lives > report.runs > 50


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("safeguard", ["letter_once", "sync_before_commit", "fsync_file"])
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    with pytest.raises(SimulationError):
        enumerate_crashes(life, check=kept_once, pairs=40, without=(safeguard,))
