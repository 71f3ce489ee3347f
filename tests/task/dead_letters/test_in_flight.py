"""The file that outlives the process: what was in flight, what is suspected, what is skipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ripple.connectors.letter import QUARANTINE
from ripple.core.errors import InputError, NodeError
from ripple.core.event_text import line_of
from ripple.core.events import NotesLost
from ripple.model.batch import Batch, Rejected
from ripple.storage.checkpoint import partitions
from ripple.storage.store import DiskStore
from ripple.task.dead_letters import in_flight as in_flight_file
from ripple.task.dead_letters.in_flight import CAREFUL_RECORDS, InFlight
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.dead_letters.suspicion import DEATHS_MAX, Range
from ripple.task.drive import part_of, set_aside
from ripple.testing import SimulationError, SimWorld, enumerate_crashes
from ripple.world import Disk, LiveDisk

PATH = in_flight_path("vwap")
KILLER = 23
KILLED = f"killed the process {DEATHS_MAX} times"


def opened(disk: Disk, **limits: int) -> InFlight:
    return InFlight(NoteFile(disk, PATH), version="v1", **limits)


def said(life: InFlight) -> list[str]:
    return [line for event in life.remarks() if (line := line_of(event)) is not None]


def die_in(disk: Disk, first: int, end: int) -> None:
    life = opened(disk)
    life.begin("trades", first, end)
    life.close()


def test_record_that_an_output_shows_is_not_quarantined(tmp_path) -> None:
    """The process was killed from outside: without the record, the output could not go on."""
    disk = LiveDisk(tmp_path)
    for first, end in ((0, 10), (4, 5), (4, 5)):
        die_in(disk, first, end)
    life = InFlight(NoteFile(disk, PATH), version="v1", shown={"trades": 5})
    assert life.newly_quarantined == []
    assert life.quarantined("trades") == {}
    assert "offset 4: it ends each run that replays it" in "".join(said(life))
    life.close()
    life = InFlight(NoteFile(disk, PATH), version="v1", shown={"trades": 4})
    assert life.newly_quarantined == [("trades", 4)]
    life.close()


def test_life_that_could_not_say_how_it_ended_has_not_died_where_its_process_goes_on(
    tmp_path,
) -> None:
    """A store that is away took the note of a piece, and none of how the life ended."""
    disk = LiveDisk(tmp_path)
    for first, end in ((0, 10), (4, 5), *[(4, 5)] * DEATHS_MAX):
        life = InFlight(NoteFile(disk, PATH), version="v1", has_survived=True)
        assert not life.was_killed
        life.begin("trades", first, end)
        life.close()
    life = InFlight(NoteFile(disk, PATH), version="v1", has_survived=True)
    assert life.newly_quarantined == []
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
        assert life.quarantined("trades") == {4: KILLED}
        assert life.quarantined("quotes") == {}


def test_life_that_was_idle_leaves_no_suspect(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(5):
        life = opened(disk)
        assert life.pieces("trades", 0, 10) == [Range("trades", 0, 10)]
        life.begin("trades", 0, 10)
        life.stabilizing({"trades": 10})
        life.idle()
        life.close()


def die_stabilizing(disk: Disk, offset: int, version: str = "v1") -> InFlight:
    life = InFlight(NoteFile(disk, PATH), version=version)
    life.begin("trades", 0, offset)
    life.stabilizing({"trades": offset})
    life.close()
    return life


def test_kills_while_stabilizing_never_stop_a_partition(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for life_number in range(100):
        life = die_stabilizing(disk, 10)
        assert life.was_killed == life.was_killed_stabilizing == (life_number > 0)
        lines = [line for line in said(life) if "stabilized the views" in line]
        assert bool(lines) == (life_number >= DEATHS_MAX)
        if lines:
            assert lines[0].startswith(f"{life_number} runs were killed")
            assert 'the last one at {"trades": 10}' in lines[0]
            assert "memory" in lines[0]
    assert not said(die_stabilizing(disk, 10, "repaired"))


def test_cut_that_was_passed_is_no_more_talked_of(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(DEATHS_MAX):
        die_stabilizing(disk, 10)
    life = opened(disk)
    assert said(life)
    life.stabilizing({"trades": 9})  # by smaller batches
    life.stabilizing({"trades": 12})
    life.idle()
    life.close()
    assert not said(opened(disk))


def test_error_that_ends_a_run_is_no_kill_and_is_told_to_the_next(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for number in range(2 * DEATHS_MAX):
        life = opened(disk)
        assert not life.was_killed
        line = 'the previous run ended while it stabilized the views at {"trades": 10}: no room'
        assert said(life) == [line] * (number > 0)
        life.begin("trades", 0, 10)
        life.stabilizing({"trades": 10})
        with pytest.raises(NodeError), life.blamed():
            raise NodeError("no room")
        life.ended(NodeError("no room"))
        life.close()


def test_error_from_elsewhere_blames_nothing_that_was_in_flight(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for error in (OSError("disk full"), KeyboardInterrupt(), InputError("no such column")):
        for _ in range(2 * DEATHS_MAX):
            life = opened(disk)
            assert life.pieces("trades", 4, 6) == [Range("trades", 4, 6)]
            assert not life.was_killed
            life.begin("trades", 4, 5)
            if not isinstance(error, OSError):  # that comes from reading on, say
                with pytest.raises(type(error)), life.blamed():
                    raise error
            life.ended(error)
            life.close()
    assert not said(opened(disk))


def test_record_whose_error_ends_each_run_is_set_aside_with_the_error(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for first, end in ((0, 10), (4, 5), (4, 5)):
        life = opened(disk)
        life.begin("trades", first, end)
        with pytest.raises(ZeroDivisionError), life.blamed():
            raise ZeroDivisionError("by 4")
        life.ended(ZeroDivisionError("by 4"))
        life.close()
    why = f"ended the run {DEATHS_MAX} times: ZeroDivisionError: by 4"
    life = opened(disk)
    assert f"trades, offset 4: {why}; it becomes a dead letter" in said(life)
    for _ in range(2):
        life.close()
        life = opened(disk)
        assert life.quarantined("trades") == {4: why}


def test_too_many_killers_are_told_and_do_not_stop_a_partition(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(in_flight_file, "QUARANTINED_MAX", 1)
    disk = LiveDisk(tmp_path)
    for offset in (4, 6):
        assert not any("hardly the records' fault" in line for line in said(opened(disk)))
        for _ in range(DEATHS_MAX):
            die_in(disk, offset, offset + 1)
    life = opened(disk)
    assert [*life.quarantined("trades")] == [4, 6]
    assert any(line.startswith("2 records became dead letters") for line in said(life))


def test_suspects_that_will_not_come_again_are_forgotten(tmp_path) -> None:
    """Each kill leaves one; the checkpoint from which the next life goes on has passed them."""
    disk = LiveDisk(tmp_path)
    for first in range(0, 5000, 10):
        life = opened(disk)
        life.resume({"trades": first})
        life.begin("trades", first, first + 10)
        life.close()
    life = opened(disk)
    assert len(life.pieces("trades", 0, 5000)) <= 21
    assert (tmp_path / PATH).stat().st_size < 500


def test_file_of_an_earlier_release_is_read(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    disk.make_folder("vwap/00000")
    old = disk.open(PATH, create=True)
    entries: list[list[object]] = [
        ["kept", 4],
        ["opened", "v1"],
        ["quarantined", "trades", 4],
        ["suspect", "trades", 7, 8, 2],
        ["stuck", {"trades": 10}, 3],
        ["begin", "trades", 7, 8],
    ]
    old.append(b"".join(map(in_flight_file._line, entries)))
    old.close()
    life = opened(disk)
    assert life.quarantined("trades") == {4: KILLED, 7: KILLED}
    assert any(line.startswith("3 runs were killed") for line in said(life))


def test_file_of_a_later_release_is_refused_by_name(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    life = opened(disk)
    life._note(["failed", "whatever"])
    file = tmp_path / PATH
    file.write_bytes(file.read_bytes() + in_flight_file._line(["divined", 7]))
    with pytest.raises(InputError, match=r"in-flight.jsonl.*divined.*upgrade"):
        opened(disk)


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
    assert life.quarantined("trades") == {4: KILLED}
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
    file_as_it_was = whole[:at] + b"Q" + whole[at + 1 :]
    file.write_bytes(file_as_it_was)
    anew = opened(disk)
    (lost,) = anew.remarks()
    assert isinstance(lost, NotesLost)
    assert "damaged" in lost.why
    assert (tmp_path / f"{PATH}.damaged").read_bytes() == file_as_it_was
    anew.close()


def test_notes_that_cannot_be_read_cost_a_count_and_are_set_aside(tmp_path) -> None:
    (tmp_path / PATH).mkdir(parents=True)
    anew = opened(LiveDisk(tmp_path))
    assert "cannot be read: Is a directory" in said(anew)[0]
    anew.close()
    assert (tmp_path / f"{PATH}.damaged").is_dir()
    assert said(opened(LiveDisk(tmp_path))) == []


async def test_checkpoint_store_does_not_see_what_lies_beside(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    opened(disk).close()
    store = DiskStore(disk)
    assert await partitions(store) == ()
    assert await store.list("vwap/00000/manifest/") == []


# --- batches ---

BATCH = Batch(
    pa.record_batch({"size": [10, 11, 13, 14, 15]}),
    16,
    (Rejected(12, None, "size is empty", b""),),
)


def test_quarantined_record_is_set_aside_as_rejected() -> None:
    rest = set_aside(BATCH, dict.fromkeys([3, 11, 12, 15, 99], "it kills"))
    assert rest.records.column("size").to_pylist() == [10, 13, 14]
    assert rest.offsets().tolist() == [10, 13, 14]
    assert [(one.offset, one.step) for one in rest.rejected] == [
        *((11, QUARANTINE), (12, None), (15, QUARANTINE))
    ]
    assert rest.rejected[0].raw == b'{"size": 11}'
    assert rest.rejected[0].reason == "it kills"
    assert set_aside(BATCH, {3: "it kills", 99: "it kills"}) is BATCH


def test_pieces_of_a_batch_are_the_batch() -> None:
    for middle in range(10, 17):
        parts = [part_of(BATCH, Range("a", *ends)) for ends in ((10, middle), (middle, 16))]
        assert [part.next_offset for part in parts] == [middle, 16]
        assert [part.span for part in parts] == [middle - 10, 16 - middle]
        offsets = [offset for part in parts for offset in part.offsets()]
        assert offsets == BATCH.offsets().tolist()


HOLES = Batch(
    pa.record_batch({"size": [10, 11, 40, 900]}),
    1000,
    (Rejected(25, None, "size is empty", b""),),
    np.array([10, 11, 40, 900]),
)


def test_record_between_holes_is_set_aside_and_the_others_keep_their_offsets() -> None:
    rest = set_aside(HOLES, {40: "it kills", 41: "so did this, which is no more"})
    assert rest.offsets().tolist() == [10, 11, 900]
    assert [(one.offset, one.step) for one in rest.rejected] == [(25, None), (40, QUARANTINE)]
    assert (rest.first_offset, rest.next_offset, rest.span) == (10, 1000, 5)


@pytest.mark.parametrize("killer", [10, 11, 40, 900])
def test_record_that_kills_is_found_between_holes(tmp_path, killer: int) -> None:
    """No life takes a record twice or leaves one out, and only the killer is set aside."""
    disk = LiveDisk(tmp_path)
    for _ in range(DEATHS_MAX):
        assert not take_holes(opened(disk), killer)
    assert take_holes(opened(disk), killer)
    assert opened(disk).quarantined("trades") == {killer: KILLED}


def take_holes(life: InFlight, killer: int) -> bool:
    """Apply HOLES; return whether the life got through."""
    batch = set_aside(HOLES, life.quarantined("trades"))
    taken: list[int] = []
    for piece in life.pieces("trades", batch.first_offset, batch.next_offset):
        part = part_of(batch, piece)
        assert part.next_offset == piece.next_offset
        life.begin("trades", piece.first_offset, piece.next_offset)
        if killer in part.offsets():
            life.close()
            return False
        taken += part.offsets().tolist()
    life.idle()
    life.close()
    assert taken == batch.offsets().tolist()
    return True


def test_hole_without_a_record_is_one_piece(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    die_in(disk, 4, 5000)
    assert opened(disk).pieces("trades", 100, 100) == [Range("trades", 100, 100)]


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


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("safeguards", [(), ("fsync_file",), ("fsync_folder",)])
def test_record_skipped_once_is_skipped_for_ever(safeguards: tuple[str, ...]) -> None:
    if not safeguards:
        enumerate_crashes(life, pairs=60)
        return
    with pytest.raises(SimulationError):
        enumerate_crashes(life, pairs=60, without=safeguards)


# --- calm: where a note takes a network ---


def calm(disk: LiveDisk, shown: int) -> InFlight:
    place = NoteFile(disk, PATH)
    return InFlight(place, version="v1", shown={"trades": shown}, is_calm=True)


def lines(tmp_path: Path) -> int:
    return (tmp_path / PATH).read_bytes().count(b"\n")


def test_calm_life_notes_no_batch_and_is_careful_only_after_one_that_got_nowhere(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for shown in (0, 10, 20):  # each of them was killed, and got further
        life = calm(disk, shown)
        before = lines(tmp_path)
        life.begin("trades", shown, shown + 10)
        life.stabilizing({"trades": shown + 10})
        life.idle()
        life.begin("trades", shown + 10, shown + 20)
        assert lines(tmp_path) == before
        life.close()
    deaths = 0
    while not life.quarantined("trades"):
        life = calm(disk, 20)
        assert life.was_killed
        for piece in life.pieces("trades", 20, 30):
            life.begin(piece.input, piece.first_offset, piece.next_offset)
            if piece.first_offset <= 24 < piece.next_offset:
                break  # and dies
        life.close()
        deaths += 1
    assert list(life.quarantined("trades")) == [24]
    assert deaths <= DEATHS_MAX + 1
    life = calm(disk, 20)
    life.begin("trades", 20, 30)
    life.begin("trades", 20 + CAREFUL_RECORDS, 30 + CAREFUL_RECORDS)
    before = lines(tmp_path)
    life.begin("trades", 30 + CAREFUL_RECORDS, 40 + CAREFUL_RECORDS)
    assert lines(tmp_path) == before, "it is past what may have killed, and calm again"
    life.close()
    life = calm(disk, 50)
    assert len(life.pieces("trades", 20, 30)) == 1


def test_careful_life_notes_what_was_there_when_it_began_and_no_more(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    for _ in range(2):
        life = calm(disk, 20)
        life.close()  # killed, and neither has shown anything
    life = calm(disk, 20)
    assert life.is_careful
    life.limit({"trades": 30})
    before = lines(tmp_path)
    life.begin("trades", 20, 30)
    life.stabilizing({"trades": 30})
    assert lines(tmp_path) == before + 2
    life.begin("trades", 30, 40)
    life.stabilizing({"trades": 40})
    life.idle()
    assert lines(tmp_path) == before + 3, "what was noted last is passed, and nothing else"
    life.close()
    life = calm(disk, 20)
    life.limit({"trades": 20})
    before = lines(tmp_path)
    life.stabilizing({"trades": 20})
    life.begin("trades", 20, 30)
    assert lines(tmp_path) == before, "nothing was there that could have killed"


def test_input_that_is_past_what_may_have_killed_leaves_others_careful(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    shown = {"trades": 5, "prices": 9}

    def opened() -> InFlight:
        return InFlight(NoteFile(disk, PATH), version="v1", shown=shown, is_calm=True)

    for _ in range(2):
        opened().close()
    life = opened()
    life.limit({"trades": 7, "prices": 9})
    life.begin("prices", 9, 12)  # came since
    life.begin("trades", 5, 7)  # and dies
    life.close()
    assert len(opened().pieces("trades", 5, 7)) == 2


def test_calm_life_says_which_records_have_raised(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    life = calm(disk, 0)
    life.begin("trades", 0, 10)
    with pytest.raises(ZeroDivisionError), life.blamed():
        raise ZeroDivisionError("by 4")
    life.ended(ZeroDivisionError("by 4"))
    life.close()
    assert len(calm(disk, 0).pieces("trades", 0, 10)) == 10
