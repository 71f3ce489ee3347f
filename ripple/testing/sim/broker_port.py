"""The simulated broker as one process sees it: requests that are lost, late, or never answered."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ripple.testing.sim.service import NoReplyError
from ripple.world.broker import (
    BrokerError,
    FencedError,
    Read,
    Records,
    TopicPartition,
    UnknownOutcomeError,
)
from ripple.world.producer_state import ProducerState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.testing.sim.broker import SimBroker
    from ripple.testing.sim.broker_log import BrokerLog
    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.effects import Effects
    from ripple.testing.sim.faults import Fault
    from ripple.testing.sim.service import SimService

T = TypeVar("T")

LATE_SECONDS_MAX = 120


class SimBrokerPort:
    """The broker for one process.

    ``removed`` names safeguards that are off: with ``producer_drop``, a producer whose transaction
    has an unknown outcome asks again and continues, as clients of Kafka do by themselves.
    """

    def __init__(
        self, service: SimService, broker: SimBroker, effects: Effects, removed: frozenset[str]
    ) -> None:
        self.broker = broker
        self.removed = removed
        self._service = service
        self._effects = effects

    async def partitions(self, topic: str) -> int:
        return await self.ask("broker_read", topic, lambda: self.broker.partitions(topic))

    async def make(
        self,
        topic: str,
        partitions: int,
        *,
        is_compacted: bool = False,
        is_kept: bool = False,
        has_keys: bool = True,  # noqa: ARG002 - none is compacted
    ) -> None:
        what = f"{topic} {partitions}{' compacted' if is_compacted else ''}"
        what += " kept" if is_kept else ""
        await self.ask("broker_make", what, lambda: self.broker.make(topic, partitions))

    async def remove_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        def remove() -> None:
            for place, offset in offsets.items():
                self.broker.remove_before(place, offset)

        await self.ask("broker_remove", f"before {sorted(offsets.items())}", remove)

    async def read_by(self, group: str) -> dict[TopicPartition, int]:
        return await self.ask("broker_read", f"by {group}", lambda: self.broker.read_by(group))

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.ask(
            "broker_read",
            f"earliest {len(places)}",
            lambda: {place: self.broker.seen(place).start for place in places},
        )

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        def end(log: BrokerLog) -> int:
            return log.stable_end if committed else log.end

        return await self.ask(
            "broker_read",
            f"ends {len(places)}",
            lambda: {place: end(self.broker.seen(place)) for place in places},
        )

    async def prepare(self, name: str, group: str | None) -> None:
        """Do nothing: there is one broker."""

    async def producer(self, name: str) -> SimProducer:
        epoch = await self.ask("broker_init", name, lambda: self.broker.begin_producer(name))
        return SimProducer(self, name, epoch)

    def consumer(self, *, ahead: bool = True) -> SimConsumer:  # noqa: ARG002 - no read-ahead
        return SimConsumer(self)

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    async def ask(self, name: str, subject: str, act: Callable[[], T]) -> T:
        """Let the broker do something. Raises BrokerError."""

        def fail(fault: Fault, chance: Chance) -> None:
            if fault.kind == "broker_refused":
                raise BrokerError(f"{name} {subject}: refused (simulated)", done=False)
            if fault.kind == "broker_late":
                seconds = 1 + chance.below(LATE_SECONDS_MAX)
                self.broker.later(seconds, act)
            elif fault.kind == "broker_lost_reply":
                with suppress(BrokerError):
                    act()
            raise NoReplyError

        def serve() -> tuple[T, float]:
            if self._effects.crash is not None:
                return act(), 0.0  # it was on its way when its sender died
            return self._effects.run(name, subject, act, fail), 0.0

        try:
            return await self._service.ask(serve)
        except TimeoutError:
            done = False if name == "broker_read" else None
            raise BrokerError(f"{name} {subject}: no answer (simulated)", done=done) from None

    def notify(self, act: Callable[[], None]) -> None:
        """Send a notification of the broker to this process."""
        self._service.notify(act)


class SimProducer:
    """One producer of an id."""

    def __init__(self, port: SimBrokerPort, name: str, epoch: int) -> None:
        self.epoch = epoch
        self._port = port
        self._name = name
        self._state = ProducerState(name)
        self._sequences: dict[TopicPartition, int] = {}
        self._has_sent = False

    def begin(self) -> None:
        self._state.begin()
        self._has_sent = False

    async def send(self, place: TopicPartition, records: Records) -> None:
        await self.send_all({place: records})

    async def send_all(
        self,
        parts: Mapping[TopicPartition, Records],
        offsets: tuple[str, Mapping[TopicPartition, int]] | None = None,
    ) -> Mapping[TopicPartition, int]:
        found = {place: await self._send_to(place, records) for place, records in parts.items()}
        if offsets is not None:
            await self.send_offsets(*offsets)
        return found

    async def _send_to(self, place: TopicPartition, records: Records) -> int:
        sent = tuple(records)
        sequence = self._sequences.get(place, 0)
        found: list[int] = []
        await self._send(
            f"{place} {sequence} {zlib.crc32(repr(sent).encode()):08x}",
            lambda: found.append(
                self._port.broker.send(self._name, self.epoch, place, sequence, sent)
            ),
        )
        self._sequences[place] = sequence + 1
        return found[-1]

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        sent = dict(offsets)
        await self._send(
            f"{group} {zlib.crc32(repr(sent).encode()):08x}",
            lambda: self._port.broker.send_offsets(self._name, self.epoch, group, sent),
        )

    async def _send(self, what: str, act: Callable[[], None]) -> None:
        self._state.begin_send()
        self._has_sent = True
        await self._ask("broker_send", f"{self._name}:{self.epoch} {what}", act)
        self._state.sent()

    async def commit(self) -> None:
        self._state.check_whole()
        await self._end(commits=True)

    async def abort(self) -> None:
        self._state.check(is_open=True)
        await self._end(commits=False)

    async def close(self) -> None:
        self._state.close()

    async def _end(self, *, commits: bool) -> None:
        if self._has_sent:
            word = "commit" if commits else "abort"
            await self._ask(
                "broker_end",
                f"{self._name}:{self.epoch} {word}",
                lambda: self._port.broker.end(self._name, self.epoch, commits=commits),
            )
        self._state.ended()

    async def _ask(self, name: str, subject: str, act: Callable[[], None]) -> None:
        """Send a request; be over if its outcome is unknown."""
        unknown = UnknownOutcomeError(f"{name} {subject}: the outcome is unknown")
        state = self._state
        before, state.over = state.over, unknown  # also if this is cancelled
        while True:
            try:
                await self._port.ask(name, subject, act)
            except FencedError as error:
                state.over = error
                raise
            except BrokerError as error:
                if error.done is not None:
                    state.over = before
                    raise
                if "producer_drop" in self._port.removed:
                    continue
                raise unknown from error
            state.over = before
            return


class SimConsumer:
    """A reader of some partitions."""

    def __init__(self, port: SimBrokerPort) -> None:
        self._port = port
        self._positions: dict[TopicPartition, int] = {}
        self._changed = asyncio.Event()
        self._turn = 0

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._positions = dict(positions)
        self._changed.set()

    async def read(self, *, records_max: int, wait_s: float) -> dict[TopicPartition, Read]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        while True:
            asked = self._positions
            self._changed.clear()
            places = list(asked)
            if places:  # each is first in turn: one that is full leaves something to the others
                self._turn = (self._turn + 1) % len(places)
                places = places[self._turn :] + places[: self._turn]
            found = await self._port.ask(
                "broker_read",
                f"read {len(places)} {records_max}",
                lambda places=places, asked=asked: self._fetch(places, asked, records_max),  # type: ignore[misc]
            )
            if self._positions is asked and found:
                asked.update((place, each.next_offset) for place, each in found.items())
                return found
            if loop.time() >= until:
                return {}
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), until - loop.time())

    async def close(self) -> None:
        self._positions = {}

    def _fetch(
        self, places: list[TopicPartition], asked: dict[TopicPartition, int], records_max: int
    ) -> dict[TopicPartition, Read]:
        """Read at the broker; if there is nothing, wait for its notification."""
        found: dict[TopicPartition, Read] = {}
        for place in places:
            read = self._port.broker.seen(place).read(asked[place], records_max)
            if read.next_offset > asked[place]:
                found[place] = read
                records_max -= len(read.records)
        if not found:
            self._port.broker.when_changed(self, lambda: self._port.notify(self._changed.set))
        return found
