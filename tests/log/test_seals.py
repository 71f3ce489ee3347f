"""Two owners of one partition: the old one stops anywhere, the new takes over, the old wakes."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from ripple.log import (
    LogSettings,
    PartitionReader,
    PartitionWriter,
    StaleEpochError,
    Stamp,
    Topic,
    WriterFailedError,
)
from ripple.testing import SimDisk
from ripple.testing.sim_effects import Crash, Effects, Trace
from ripple.testing.sim_faults import Planned
from ripple.world import DiskLockedError
from ripple.world.ports import Guards, all_guards
from tests.log.trades import SCHEMA, ManualClock, read_all, records_of, rows_of
from tests.log.turns import shared

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
                with suppress(InterruptedError):
                    writer.append(records_of(rows), Stamp(1, 0, number))
                self.note(writer)
            writer.sync()
            self.note(writer)
            before_closing()

    def note(self, writer: PartitionWriter) -> None:
        self.acked = max(self.acked, writer.durable_offset // ROWS)


@dataclass
class Frozen:
    """A program on a disk of its own that stops before its nth call, until it is woken."""

    program: Callable[[Any], None]
    disk: SimDisk
    stop_at: int
    fail_at: int = 0
    calls: int = 0
    appends: int = 0
    is_dead: bool = False
    error: BaseException | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _woken: threading.Event = field(default_factory=threading.Event)
    _thread: Any = None

    def start(self) -> bool:
        """Run until it stops; return whether it did before it ended."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._stopped.wait()
        return self._thread.is_alive() and self.calls == self.stop_at and not self._ended

    _ended: bool = False

    def wake(self, *, dies: bool = False) -> None:
        self.is_dead = dies
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.program(_Failing(shared(self.disk, self._pause), self))
        except BaseException as error:
            self.error = error
        self._ended = True
        self._stopped.set()

    def _pause(self) -> None:
        self.calls += 1
        if self.calls == self.stop_at:
            self._stopped.set()
            self._woken.wait()
        if self.is_dead:
            raise Crash


class _Failing:
    """A disk, or a file, of which one append succeeds and says that it did not."""

    def __init__(self, one: Any, frozen: Frozen) -> None:
        self._one = one
        self._frozen = frozen

    def append(self, data: bytes) -> None:
        self._one.append(data)
        self._frozen.appends += 1
        if self._frozen.appends == self._frozen.fail_at:
            raise InterruptedError(errno.EINTR, "it was written all the same")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._one, name)
        if not name.startswith("open"):
            return method
        return lambda *arguments, **named: _Failing(method(*arguments, **named), self._frozen)


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
        check_readable(disk, acked, guards)
        again = Client(acked)
        again.produce(disk, 10, guards)
        assert read_all(Topic.open(disk, "ticks")) == EXPECTED
        return has_stopped
    assert old.error is None or isinstance(old.error, REFUSALS), old.error
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


REFUSALS = (StaleEpochError, DiskLockedError, WriterFailedError)
LATE = 1 << 30


def enumerate_pauses(
    settings: LogSettings,
    old_epoch: int | None,
    *,
    step: int = 1,
    wakes: int = 3,
    fails: tuple[int, ...] = (0,),
    guards: Guards = all_guards,
) -> int:
    """Stop the old owner at each of its calls; wake it at several of the new one's, and after."""
    random = Random(f"{settings} {old_epoch}")
    count = 0
    for fail_at in fails:
        stop_at = 1
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
    assert enumerate_pauses(settings, old_epoch) > 200
