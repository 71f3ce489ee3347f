"""The work of one Spark task in a micro-batch: advance a partition to a cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.spark import packets
from ripple.spark.packets import Packet
from ripple.spark.streaming import calls
from ripple.spark.streaming.resident import here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.core.cut import Cut
    from ripple.spark.streaming.hints import HintReceiver, Hints
    from ripple.spark.streaming.stream import Stream

Address: TypeAlias = tuple[str, int]

BEAT = "ripple.beat"
"""The number of the beat, beside the offsets that Spark is offered; no input is called so."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One partition of a pipeline, and its cut to reach; finished work is not repeated.

    hint_receiver: with the token of the query. at: the last known address of the partition's
    process.
    """

    stream: Stream
    partition: int
    stop: Cut
    hint_receiver: HintReceiver
    at: Address | None = None

    def run(self) -> dict[str, Any]:
        """Advance the partition in its process, else here from the store; return the report.

        Raises the task's errors, including FencedError.
        """
        token = self.hint_receiver.token
        own = calls.served(token, self.hint_receiver.host)
        found = None
        if self.at is not None and self.at != own:
            here().drop(self)  # another owner has fenced it
            found = calls.asked(self.at, token, self.partition, self.stop)
        at = self.at if found is not None and self.at is not None else own
        found = found or here().bring(self)
        self.hint_receiver.send(self.partition, found["epoch"], at)
        return found


@dataclass(frozen=True, slots=True)
class TurnJob:
    """A turn as a job among others."""

    turn: Turn

    def run(self) -> Iterator[Packet]:
        """Run the turn, and yield the report."""
        yield Packet(packets.REPORT, sender=self.turn.partition, about=self.turn.run())


def turns(stream: Stream, hints: Hints, start: Cut, end: Cut) -> list[Turn]:
    """Return a turn for each partition with more to read, or for all with another beat."""
    names, found = [name for name in end if name != BEAT], []
    is_beat = end.get(BEAT) != start.get(BEAT)
    for number in range(stream.partitions):
        own = names[number :: stream.partitions]
        if is_beat or any(end[name] != start.get(name) for name in own):
            stop = {name: end[name] for name in own}
            found.append(Turn(stream, number, stop, hints.hint_receiver, hints.known.get(number)))
    return found
