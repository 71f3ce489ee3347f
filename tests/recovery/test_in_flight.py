"""The file that outlives the process: what was in flight, what is suspected, what is skipped."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from ripple.checkpoint import partitions
from ripple.connectors.base import Batch, Rejected
from ripple.errors import InputError, LimitError
from ripple.recovery.dead_letters import DeadLetterLog, letters_path
from ripple.recovery.in_flight import InFlight, StuckError, in_flight_path, part_of, set_aside
from ripple.recovery.letter import QUARANTINE
from ripple.recovery.suspicion import DEATHS_MAX, Range
from ripple.store import DiskStore
from ripple.testing import SimulationError, SimWorld, enumerate_crashes
from ripple.world import Disk, LiveClock, LiveDisk

PATH = in_flight_path("vwap")
KILLER = 23


def opened(disk: Disk, **limits: int) -> InFlight:
    return InFlight(disk, PATH, version="v1", **limits)


def die_in(disk: Disk, first: int, end: int) -> None:
    life = opened(disk)
    life.begin("trades", first, end)
    life.close()


def test_record_that_an_output_shows_is_not_quarantined(tmp_path) -> None:
    """The process was killed from outside: without the record, the output could not go on."""
    disk = LiveDisk(tmp_path)
    for first, end in ((0, 10), (4, 5), (4, 5)):
        die_in(disk, first, end)
    life = InFlight(disk, PATH, version="v1", shown={"trades": 5})
    assert life.newly_quarantined == []
    assert life.quarantined("trades") == ()
    life.close()
    life = InFlight(disk, PATH, version="v1", shown={"trades": 4})
    assert life.newly_quarantined == [("trades", 4)]
    life.close()


def test_killer_is_quarantined_and_stays_so(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for first, end in ((0, 10), (4, 5), (4, 5)):
        die_in(disk, first, end)
    life = opened(disk)
    assert life.newly_quarantined == [("trades", 4)]
    for _ in range(2):
        life.close()
        life = opened(disk)
        assert life.newly_quarantined == []
        assert life.quarantined("trades") == [4]
        assert life.quarantined("quotes") == ()


def test_life_that_was_idle_leaves_no_suspect(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(5):
        life = opened(disk)
        assert life.pieces("trades", 0, 10) == [Range("trades", 0, 10)]
        life.begin("trades", 0, 10)
        life.stabilizing({"trades": 10})
        life.idle()
        life.close()


def test_cut_that_kills_is_refused_with_its_name(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(DEATHS_MAX):
        life = opened(disk)
        life.begin("trades", 0, 10)
        life.stabilizing({"trades": 10})
        life.close()
    for _ in range(2):
        with pytest.raises(StuckError, match=r'3 times .* cut \{"trades": 10\}.*in-flight'):
            opened(disk)
    InFlight(disk, PATH, version="repaired").close()


def test_too_many_killers_are_refused(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for offset in (4, 6):
        for _ in range(DEATHS_MAX):
            die_in(disk, offset, offset + 1)
    with pytest.raises(LimitError, match=r"2 records killed .* raise quarantined_max, 1"):
        opened(disk, quarantined_max=1)
    assert opened(disk, quarantined_max=2).quarantined("trades") == [4, 6]


def test_file_stays_small_and_forgets_nothing(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(DEATHS_MAX):
        die_in(disk, 4, 5)
    die_in(disk, 5000, 5002)
    life = opened(disk, bytes_max=2000)
    for offset in range(10_000):
        life.begin("trades", offset, offset + 1)
        assert (tmp_path / PATH).stat().st_size <= 2000
    life.close()
    life = opened(disk)
    assert life.quarantined("trades") == [4]
    assert len(life.pieces("trades", 5000, 5002)) == 1, "it was passed"
    assert life.pieces("trades", 9998, 10_000) == [
        Range("trades", 9998, 9999),
        Range("trades", 9999, 10_000),
    ]


def test_torn_line_costs_a_count_and_a_damaged_list_is_refused(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(DEATHS_MAX):
        die_in(disk, 4, 5)
    opened(disk).close()
    die_in(disk, 7, 8)
    file = tmp_path / PATH
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    assert len(opened(disk).pieces("trades", 7, 9)) == 1
    at = whole.index(b"quarantined")
    file.write_bytes(whole[:at] + b"Q" + whole[at + 1 :])
    with pytest.raises(InputError, match="damaged"):
        opened(disk)


def test_checkpoint_store_does_not_see_what_lies_beside(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    DeadLetterLog(
        disk, letters_path("vwap"), pipeline="vwap", version="v", clock=LiveClock()
    ).close()
    opened(disk).close()
    store = DiskStore(disk)
    assert asyncio.run(partitions(store)) == ()
    assert asyncio.run(store.list("vwap/00000/manifest/")) == []


# --- batches ---

BATCH = Batch(
    pa.record_batch({"size": [10, 11, 13, 14, 15]}),
    16,
    (Rejected(12, None, "size is empty", b""),),
)


def test_quarantined_record_is_set_aside_as_rejected() -> None:
    rest = set_aside(BATCH, [3, 11, 12, 15, 99])
    assert rest.records.column("size").to_pylist() == [10, 13, 14]
    assert rest.offsets().tolist() == [10, 13, 14]
    assert [(one.offset, one.step) for one in rest.rejected] == [
        *((11, QUARANTINE), (12, None), (15, QUARANTINE))
    ]
    assert rest.rejected[0].raw == b'{"size": 11}'
    assert rest.rejected[0].reason == f"killed the process {DEATHS_MAX} times"
    assert set_aside(BATCH, [3, 99]) is BATCH


def test_pieces_of_a_batch_are_the_batch() -> None:
    for middle in range(10, 17):
        parts = [part_of(BATCH, Range("a", *ends)) for ends in ((10, middle), (middle, 16))]
        assert [part.next_offset for part in parts] == [middle, 16]
        assert [part.span for part in parts] == [middle - 10, 16 - middle]
        offsets = [offset for part in parts for offset in part.offsets()]
        assert offsets == BATCH.offsets().tolist()


# --- crashes ---


def life(world: SimWorld, seed: int) -> None:
    """Take 40 records in batches of 10; one of them ends the life.

    The witness keeps what was said to be quarantined.
    """
    in_flight = opened(world.disk, bytes_max=600)
    skipped = [*in_flight.quarantined("trades")]
    assert skipped in ([], [KILLER]), "an innocent record was quarantined"
    assert skipped or not world.witness.get("skipped"), "a quarantined record was taken in again"
    world.witness["skipped"] = skipped
    for first in range(0, 40, 10):
        for piece in in_flight.pieces("trades", first, first + 10):
            in_flight.begin("trades", piece.first_offset, piece.next_offset)
            if piece.first_offset <= KILLER < piece.next_offset and not skipped:
                in_flight.close()
                return life(world, seed)
        in_flight.stabilizing({"trades": first + 10})
        in_flight.idle()
    in_flight.close()
    return None


@pytest.mark.parametrize("safeguards", [(), ("fsync_file",), ("fsync_folder",)])
def test_what_was_skipped_once_is_skipped_for_ever(safeguards: tuple[str, ...]) -> None:
    if not safeguards:
        enumerate_crashes(life, pairs=60)
        return
    with pytest.raises(SimulationError):
        enumerate_crashes(life, pairs=60, without=safeguards)
