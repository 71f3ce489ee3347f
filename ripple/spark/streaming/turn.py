"""What one task of a micro-batch does: bring a partition up to a cut, wherever it lives."""

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
    from ripple.spark.streaming.hints import Hearer, Hints
    from ripple.spark.streaming.stream import Stream

Address: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Turn:
    """One partition of a pipeline, and how far it is to go; what is there already is not repeated.

    hearer: who wants to know where it lives; its token is that of the query. at: where that was
    when it was heard of last.
    """

    stream: Stream
    partition: int
    stop: Cut
    hearer: Hearer
    at: Address | None = None

    def run(self) -> dict[str, Any]:
        """Do it, and return the report: by who has the state, else here from the store.

        Raises what the life raises, FencedError among it.
        """
        token = self.hearer.token
        own = calls.served(token, self.hearer.host)
        found = None
        if self.at is not None and self.at != own:
            here().drop(self)  # whatever it was, somebody has shut it out
            found = calls.asked(self.at, token, self.partition, self.stop)
        at = self.at if found is not None and self.at is not None else own
        found = found or here().bring(self)
        self.hearer.tell(self.partition, found["epoch"], at)
        return found


@dataclass(frozen=True, slots=True)
class TurnJob:
    """A turn as a job among others."""

    turn: Turn

    def run(self) -> Iterator[Packet]:
        """Do it, and yield the report."""
        yield Packet(packets.REPORT, sender=self.turn.partition, about=self.turn.run())


def turns(stream: Stream, hints: Hints, start: Cut, end: Cut) -> list[Turn]:
    """Return a turn for each partition of the pipeline that has more to read."""
    names, found = list(end), []
    for number in range(stream.partitions):
        own = names[number :: stream.partitions]
        if any(end[name] != start.get(name) for name in own):
            stop = {name: end[name] for name in own}
            found.append(Turn(stream, number, stop, hints.hearer, hints.known.get(number)))
    return found
