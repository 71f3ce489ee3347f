"""Two owners of one partition: the old one stops, the new one takes over, the old one wakes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ripple.storage.log import (
    LogDamagedError,
    LogSettings,
    PartitionReader,
    PartitionWriter,
    StaleEpochError,
    Stamp,
    Topic,
)
from ripple.storage.log.epochs import newest_fence, read_epochs
from ripple.storage.log.verify import verify
from ripple.testing import SimDisk
from ripple.testing.sim.effects import Crash, Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.world import DiskLockedError, LiveClock, LiveDisk
from ripple.world.ports import Guards, all_guards
from tests.examples import SAMPLED
from tests.patience import PATIENCE_S
from tests.storage.log.frozen import Frozen
from tests.storage.log.trades import SCHEMA, ManualClock, read_all, records_of, rows_of, topic_of
from tests.storage.log.turns import shared

APPENDS = 7
ROWS = 3
EXPECTED = rows_of(0, APPENDS * ROWS)

EACH = LogSettings(segment_bytes_max=2600, index_interval_bytes=1000)
GROUPS = LogSettings(sync_appends=3, segment_bytes_max=2600, index_interval_bytes=1000)


@dataclass
class Client:
    """Appends what was not acknowledged to it, wherever it is sent; ``acked`` counts appends."""

    acked: int = 0

    def produce(
        self,
        disk: Any,
        epoch: int | None,
        guards: Guards = all_guards,
        before_closing: Callable[[], None] = lambda: None,
    ) -> None:
        topic = Topic.open(disk, "ticks")
        with PartitionWriter(topic, 0, ManualClock(), epoch=epoch, guards=guards) as writer:
            self.note(writer)
            for number in range(self.acked, APPENDS):
                rows = EXPECTED[number * ROWS : (number + 1) * ROWS]
                writer.append(records_of(rows), Stamp(1, 0, number))
                self.note(writer)
            writer.sync()
            self.note(writer)
            before_closing()

    def note(self, writer: PartitionWriter) -> None:
        self.acked = max(self.acked, writer.durable_offset // ROWS)


class Watcher:
    """A reader that is there all the time: it sees one sequence, each record once."""

    def __init__(self, disk: SimDisk, guards: Guards) -> None:
        self._reader = PartitionReader(Topic.open(disk, "ticks"), 0, guards=guards)
        self.seen: list[Any] = []

    def look(self) -> None:
        self._reader.look()
        while (entry := self._reader.next()) is not None:
            self.seen += entry.records.to_pylist()  # type: ignore[union-attr]  # no markers
            assert self.seen == EXPECTED[: len(self.seen)], "a reader saw what does not count"


def without(*names: str) -> Guards:
    return lambda safeguard: safeguard not in names


def taken_over(
    settings: LogSettings,
    old_epoch: int | None,
    *,
    stop_at: int,
    wake_at: int,
    power_at: int = 0,
    fail_at: int = 0,
    salt: int = 0,
    guards: Guards = all_guards,
) -> bool:
    """Stop the old owner, let the new one take over, wake the old one meanwhile; check all.

    wake_at: the call of the new owner before which the old one goes on to its end. power_at: the
    one before which the power fails. Return False when the old owner ended before it was stopped.
    """
    disk = SimDisk()
    Topic.create(disk, "ticks", SCHEMA, time_field="at_ns", settings=settings)
    client, retrying = Client(), Client()
    old = Frozen(
        lambda own: client.produce(own, old_epoch, guards), disk, stop_at=stop_at, fail_at=fail_at
    )
    has_stopped = old.start()
    watcher = Watcher(disk, guards)
    watcher.look()
    retrying.acked = client.acked
    acked_before = client.acked
    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        if calls == power_at:
            raise Crash
        if calls == wake_at and has_stopped:
            old.wake()
            check_readable(disk, client.acked, guards)
        watcher.look()

    def at_the_end() -> None:
        if has_stopped and wake_at > calls:
            old.wake()
            assert client.acked <= acked_before + settings.sync_appends, "it went on acknowledging"

    try:
        retrying.produce(shared(disk, between), 9, guards, at_the_end)
    except Crash:
        old.wake(dies=True)
        acked = max(client.acked, retrying.acked)
        disk = disk.after_power_cut(Effects(1, Planned(()), Trace()), salt)
        # Readers wait for the next owner where a candidate has left its fence.
        is_fenced = newest_fence(disk, "ticks/0") > read_epochs(disk, "ticks/0").newest
        check_readable(disk, 0 if is_fenced else acked, guards)
        again = Client(acked)
        again.produce(disk, 10, guards)
        assert read_all(Topic.open(disk, "ticks")) == EXPECTED
        return has_stopped
    refusals = (StaleEpochError, DiskLockedError, *([InterruptedError] if fail_at else []))
    assert old.error is None or isinstance(old.error, refusals), old.error
    watcher.look()
    assert watcher.seen == EXPECTED
    check_readable(disk, APPENDS, guards)
    topic = Topic.open(disk, "ticks")
    # What comes later: an owner of a higher epoch, and one without any.
    PartitionWriter(topic, 0, ManualClock(), epoch=11).close()
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        assert (writer.epoch, writer.next_offset) == (12, len(EXPECTED))
    assert read_all(topic) == EXPECTED
    return has_stopped


def check_readable(disk: SimDisk, acked: int, guards: Guards) -> None:
    found: list[Any] = []
    with PartitionReader(Topic.open(disk, "ticks"), 0, guards=guards) as reader:
        for entry in reader.read():
            found += entry.records.to_pylist()  # type: ignore[union-attr]  # no markers
        end = reader.range()[1]
    assert found == EXPECTED[: len(found)], "what is there was never written"
    assert len(found) >= acked * ROWS, "what was acknowledged is gone"
    assert end == len(found)


LATE = 1 << 30


def enumerate_pauses(
    settings: LogSettings,
    old_epoch: int | None,
    *,
    first: int = 1,
    step: int = 1,
    wakes: int = 3,
    fails: tuple[int, ...] = (0,),
    guards: Guards = all_guards,
) -> int:
    """Stop the old owner at each of its calls; wake it at several of the new one's, and after."""
    random = Random(f"{settings} {old_epoch}")
    count = 0
    for fail_at in fails:
        stop_at = first
        has_stopped = True
        while has_stopped:
            for wake_at in [LATE, *(1 + random.randrange(90) for _ in range(wakes))]:
                has_stopped = taken_over(
                    settings,
                    old_epoch,
                    stop_at=stop_at,
                    wake_at=wake_at,
                    fail_at=fail_at,
                    guards=guards,
                )
                count += 1
            stop_at += step
    return count


@pytest.mark.parametrize("settings", [EACH, GROUPS], ids=["each", "groups"])
@pytest.mark.parametrize("old_epoch", [None, 3])
def test_owner_that_stops_anywhere_and_wakes_anywhen_changes_nothing(
    settings: LogSettings, old_epoch: int | None
) -> None:
    assert enumerate_pauses(settings, old_epoch, step=4 * SAMPLED, wakes=1) > 10


@pytest.mark.parametrize("old_epoch", [None, 3])
def test_power_failure_at_any_step_of_a_take_over_loses_nothing_acknowledged(
    old_epoch: int | None,
) -> None:
    assert fail_the_power(old_epoch, step=1 + 2 * SAMPLED) > 20


def fail_the_power(
    old_epoch: int | None, guards: Guards = all_guards, *, first: int = 1, step: int = 1
) -> int:
    random = Random(7)
    count = 0
    for power_at in range(first, 110, step):
        for salt in (1, 2 + power_at):
            taken_over(
                GROUPS if salt % 2 else EACH,
                old_epoch,
                stop_at=1 + random.randrange(160),
                wake_at=random.choice([LATE, 1 + random.randrange(power_at)]),
                power_at=power_at,
                salt=salt,
                guards=guards,
            )
            count += 1
    return count


def test_replaced_owner_does_not_take_back_a_failed_append() -> None:
    """The old owner stops before it cuts its file back to what it had before the append."""
    assert enumerate_pauses(GROUPS, 3, fails=(2, 6), step=4 * SAMPLED, wakes=0) > 5


# What is tried, and where the search begins: it was found there when this was written.
ABLATIONS = {
    "fence_first": (partial(enumerate_pauses, EACH, 3, step=3, wakes=6), 37),
    "fence_check": (partial(enumerate_pauses, EACH, 3, step=5), 41),
    "seal_heeded": (partial(enumerate_pauses, EACH, 3, step=5), 41),
    "seal_at_durable": (partial(enumerate_pauses, GROUPS, 3, fails=(2,), wakes=0), 49),
    "tail_synced": (partial(fail_the_power, 3), 69),
}


@pytest.mark.parametrize("safeguard", ABLATIONS)
def test_missing_safeguard_of_a_take_over_is_found_out(safeguard: str) -> None:
    tried, found_at = ABLATIONS[safeguard]

    def search() -> None:
        for first in (found_at, 1):
            tried(guards=without(safeguard), first=first)

    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever finds it
        search()
    assert not isinstance(found.value, TypeError | AttributeError | NameError), found.value


@pytest.mark.parametrize("removed", [(), ("link_absent",)])
def test_of_two_that_take_over_one_gets_the_seal(removed: tuple[str, ...]) -> None:
    """The lower one stops anywhere in its take-over, the higher one takes over all the same."""
    if removed:
        with pytest.raises(AssertionError):
            two_candidates(removed)
    else:
        two_candidates(removed)


def two_candidates(removed: tuple[str, ...]) -> None:
    stop_at = 1
    has_stopped = True
    while has_stopped:
        disk = SimDisk().without(frozenset(removed))
        Topic.create(disk, "ticks", SCHEMA, time_field="at_ns", settings=GROUPS)
        with PartitionWriter(Topic.open(disk, "ticks"), 0, ManualClock()) as writer:
            writer.append(records_of(EXPECTED[:6]), Stamp(1, 0, 0))
        lower = Frozen(take_and_sync, disk, stop_at=stop_at)
        has_stopped = lower.start()
        with PartitionWriter(Topic.open(disk, "ticks"), 0, ManualClock(), epoch=3) as writer:
            writer.append(records_of(EXPECTED[6:9]), Stamp(1, 0, 1))
            writer.sync()
            lower.wake()
            assert read_all(Topic.open(disk, "ticks")) == EXPECTED[:9]
            writer.append(records_of(EXPECTED[9:12]), Stamp(1, 0, 2))
            writer.sync()
        assert lower.error is None or isinstance(lower.error, StaleEpochError)
        assert read_all(Topic.open(disk, "ticks")) == EXPECTED[:12]
        stop_at += 1
    assert stop_at > 10


def take_and_sync(disk: Any) -> None:
    with PartitionWriter(Topic.open(disk, "ticks"), 0, ManualClock(), epoch=2) as writer:
        writer.sync()


@pytest.mark.parametrize("epoch", [4, 7])
def test_owner_without_a_higher_epoch_is_refused_by_both_epochs(epoch: int) -> None:
    topic = topic_of(SimDisk())
    with (
        PartitionWriter(topic, 0, ManualClock(), epoch=7),
        pytest.raises(StaleEpochError, match=f"epoch {epoch} .* epoch 7"),
    ):
        PartitionWriter(topic, 0, ManualClock(), epoch=epoch)


def test_lock_of_a_taken_over_partition_names_its_owner() -> None:
    topic = topic_of(SimDisk())
    with (
        PartitionWriter(topic, 0, ManualClock(), holder="frozen") as frozen,
        PartitionWriter(topic, 0, ManualClock(), holder="the new one", epoch=5),
    ):
        with pytest.raises(StaleEpochError, match=r"epoch 0 was replaced by that of epoch 5"):
            frozen.sync()
        frozen.close()
        with pytest.raises(DiskLockedError, match="the new one"):
            PartitionWriter(topic, 0, ManualClock(), holder="a person")


def test_segments_of_many_owners_are_one_log() -> None:
    disk = SimDisk()
    topic = topic_of(disk, segment_bytes_max=1000, sync_appends=0)
    for number in range(12):
        rows = rows_of(5 * number, 5)
        epoch = 3 * number if number % 4 else None
        with PartitionWriter(topic, 0, ManualClock(), epoch=epoch) as writer:
            writer.append(records_of(rows[:2]))
            writer.append(records_of(rows[2:]))
    expected = rows_of(0, 60)
    assert read_all(topic) == expected
    assert [read_all(topic, from_offset=first) for first in range(60)] == [
        expected[first:] for first in range(60)
    ]
    found = verify(topic, 0)
    assert (found.records, found.indexes, found.tail) == (60, (), None)
    with PartitionReader(topic, 0) as reader:
        assert reader.seek_time(max(row["at_ns"] for row in expected)) == 57
        assert reader.range() == (0, 60)
    seals = [name for name in disk.list("ticks/0") if name.endswith(".seal")]
    fences = [name for name in disk.list("ticks/0/epochs") if name.endswith(".fence")]
    notes = [name for name in disk.list("ticks") if name.endswith(".durable")]
    assert (len(seals), len(fences), len(notes)) == (1, 1, 1)


def test_lost_segment_of_an_owner_is_damage() -> None:
    disk = SimDisk()
    topic = topic_of(disk)
    for epoch in (2, 5):
        with PartitionWriter(topic, 0, ManualClock(), epoch=epoch) as writer:
            writer.append(records_of(rows_of(3 * writer.next_offset, 3)))
    disk.remove("ticks/0/00000000000000000003-0000000005.log")
    for use in (lambda: read_all(topic), lambda: PartitionWriter(topic, 0, ManualClock())):
        with pytest.raises(LogDamagedError, match=r"which is missing|were durable"):
            use()


APPENDER = """
import sys
from ripple.storage.log import PartitionWriter, StaleEpochError, Topic
from ripple.world import LiveClock, LiveDisk
from tests.storage.log.trades import records_of, rows_of
with PartitionWriter(Topic.open(LiveDisk(sys.argv[1]), "ticks"), 0, LiveClock()) as writer:
    while True:
        try:
            appended = writer.append(records_of(rows_of(writer.next_offset, 3)))
        except StaleEpochError as error:
            print(error, flush=True)
            sys.exit(3)
        print(appended.next_offset, flush=True)
"""


def test_frozen_process_acknowledges_nothing_when_it_wakes(tmp_path: Path) -> None:
    topic = topic_of(LiveDisk(tmp_path))
    command = [sys.executable, "-c", APPENDER, str(tmp_path)]
    root = Path(__file__).parents[3]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as old,
        PartitionReader(topic, 0) as reader,
    ):
        assert old.stdout is not None
        acknowledged = [int(old.stdout.readline()) for _ in range(20)]
        seen = [row for entry in reader.read() for row in entry.records.to_pylist()]  # type: ignore[union-attr]  # no markers
        os.kill(old.pid, signal.SIGSTOP)
        with pytest.raises(DiskLockedError):
            PartitionWriter(topic, 0, LiveClock())
        with PartitionWriter(topic, 0, LiveClock(), epoch=1) as writer:
            begin = writer.next_offset
            writer.append(records_of(rows_of(begin, 5)))
            os.kill(old.pid, signal.SIGCONT)
            rest, _ = old.communicate(timeout=PATIENCE_S)
            writer.append(records_of(rows_of(begin + 5, 5)))
        *more, refusal = rest.splitlines()
        assert "epoch 0 was replaced by that of epoch 1" in refusal
        assert old.returncode == 3
        # What the pipe still held was acknowledged before.
        assert max([*acknowledged, *map(int, more)]) <= begin
        reader.look()
        while (entry := reader.next()) is not None:
            seen += entry.records.to_pylist()  # type: ignore[union-attr]  # no markers
    assert seen == read_all(topic) == rows_of(0, begin + 10)
