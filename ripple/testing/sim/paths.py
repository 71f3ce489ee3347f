"""The paths between simulated machines: latency and cuts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.effects import Trace
    from ripple.testing.sim.loop import SimLoop

LATENCY_MS_MAX = 2.0
RESEND_NS = 200_000_000  # after a lost packet
RESEND_PAUSE_NS_MAX = 120_000_000_000  # TCP waits ever longer, and no longer than this
GIVE_UP_SECONDS = 924.0  # how long Linux sends the same bytes again


@dataclass(slots=True, eq=False)
class Message:
    """A message: a call where it arrives; ``give_up`` when it has been resent in vain for long."""

    arrive: Callable[[], None]
    give_up: Callable[[], None] | None
    give_up_seconds: float
    due_ns: int = 0
    timer: asyncio.TimerHandle | None = None


class Track:
    """One direction of a connection: messages arrive in the order in which they were sent.

    On a track that is ``dead`` nothing arrives any more, without an error at either end.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.dead = False
        self.queue: deque[Message] = deque()

    def delay(self, due_ns: int) -> None:
        """Let no message under way arrive before ``due_ns``."""
        for message in self.queue:
            message.due_ns = max(message.due_ns, due_ns)


class Paths:
    """Whether one machine hears another, by direction.

    Messages are segments of TCP: a segment that meets a cut is sent again until it arrives or its
    sender gives up. Nothing is lost without an error, nothing arrives twice, and within a track
    order is kept; between tracks there is none.
    """

    def __init__(self, loop: SimLoop, chance: Chance, trace: Trace) -> None:
        self.latency_ms_max = LATENCY_MS_MAX
        self.cuts_made = 0
        self.chance = chance
        self._loop = loop
        self._trace = trace
        self._cut_at_ns: dict[tuple[str, str], int] = {}
        self._down: dict[str, int] = {}
        self._stalled: dict[Track, None] = {}

    # What a scenario does.

    def cut(self, one: str, other: str) -> None:
        """Let nothing pass between two machines, in either direction."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: str, target: str) -> None:
        """Let nothing pass from ``source`` to ``target``; the other direction stays as it is."""
        self._note(f"cut {source}>{target}")
        self.cuts_made += 1
        self._cut_at_ns[source, target] = self._loop.time_ns()

    def cut_for(self, source: str, target: str, seconds: float) -> None:
        """Cut one way for a while, unless it is cut already; a machine always hears itself."""
        path = source, target
        if source == target or path in self._cut_at_ns:
            return
        self.cut_one_way(source, target)
        cut_at_ns = self._cut_at_ns[path]

        def heal() -> None:
            if self._cut_at_ns.get(path) == cut_at_ns:
                self._heal(path)

        self._loop.call_later(seconds, heal)

    def split(self, ones: Sequence[str], others: Sequence[str]) -> None:
        """Cut each of ``ones`` off each of ``others``."""
        for one in ones:
            for other in others:
                self.cut(one, other)

    def heal(self, one: str = "", other: str = "") -> None:
        """Undo all cuts, or those between two machines, or all of one machine."""
        named = {name for name in (one, other) if name}
        for path in [path for path in self._cut_at_ns if named <= set(path)]:
            self._heal(path)

    def _heal(self, path: tuple[str, str]) -> None:
        self._note(f"heal {path[0]}>{path[1]}")
        self._resend(self._cut_at_ns.pop(path))

    # Machines.

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether nothing passes from ``source`` to ``target``."""
        return (source, target) in self._cut_at_ns or target in self._down or source in self._down

    def switch_off(self, machine: str) -> None:
        """Let a machine vanish, with the messages that it was about to resend."""
        self._down[machine] = self._loop.time_ns()
        for track in [track for track in self._stalled if track.source == machine]:
            self.drop(track)

    def switch_on(self, machine: str) -> None:
        """Let it hear and answer again."""
        self._resend(self._down.pop(machine))

    # Connections.

    def is_blocked(self, track: Track) -> bool:
        """Return whether nothing arrives along a track for now."""
        return track.dead or self.is_cut(track.source, track.target)

    def carry(
        self,
        track: Track,
        arrive: Callable[[], None],
        give_up: Callable[[], None] | None = None,
        give_up_seconds: float = GIVE_UP_SECONDS,
        *,
        late_seconds: float = 0.0,
    ) -> None:
        """Call ``arrive`` when a message has come along ``track``, or ``give_up`` instead.

        Without a ``give_up`` it is a message that TCP repeats for ever, such as its windows. It
        takes ``late_seconds`` at least.
        """
        message = Message(arrive, give_up, give_up_seconds)
        now_ns = self._loop.time_ns()
        message.due_ns = now_ns + max(self._delay_ns(track), round(late_seconds * 1e9))
        if track.queue:
            message.due_ns = max(message.due_ns, track.queue[-1].due_ns)
        track.queue.append(message)
        self._expect(track, message, now_ns)

    def stall(self, track: Track, seconds: float) -> None:
        """Let a track be slow for once: messages under way, and so later ones, are delayed."""
        now_ns = self._loop.time_ns()
        track.delay(now_ns + round(seconds * 1e9))
        for message in track.queue:
            self._expect(track, message, now_ns)

    def drop(self, track: Track) -> None:
        """Drop the messages under way: their sender has given up."""
        for message in track.queue:
            _stop_timer(message)
        track.queue.clear()
        self._stalled.pop(track, None)

    def _expect(self, track: Track, message: Message, now_ns: int) -> None:
        if self.is_blocked(track):
            self._stall(track)
        else:
            self._loop.call_at_ns(max(message.due_ns, now_ns), self._deliver, track)

    def _deliver(self, track: Track) -> None:
        """Deliver the messages that are due."""
        now_ns = self._loop.time_ns()
        while track.queue and track.queue[0].due_ns <= now_ns:
            if self.is_blocked(track):
                self._stall(track)
                return
            message = track.queue.popleft()
            _stop_timer(message)
            message.arrive()

    def _stall(self, track: Track) -> None:
        if track.source in self._down:  # lost with the machine, which does not resend
            self.drop(track)
            return
        self._stalled[track] = None
        for message in track.queue:
            if message.timer is None and message.give_up is not None:
                message.timer = self._loop.call_later(
                    message.give_up_seconds, self._give_up, track, message
                )

    def _give_up(self, track: Track, message: Message) -> None:
        message.timer = None
        if message in track.queue:
            track.queue.remove(message)
            if message.give_up is not None:
                message.give_up()

    def _resend(self, since_ns: int) -> None:
        """Resend over open paths, each track after a pause that grew with the outage."""
        now_ns = self._loop.time_ns()
        pause_ns_max = min(now_ns - since_ns, RESEND_PAUSE_NS_MAX)
        for track in [track for track in self._stalled if not self.is_blocked(track)]:
            del self._stalled[track]
            track.delay(now_ns + self.chance.below(pause_ns_max + 1))
            for message in track.queue:
                _stop_timer(message)
                self._expect(track, message, now_ns)

    def _delay_ns(self, track: Track) -> int:
        if track.source == track.target:
            return 1000 + self.chance.below(50_000)
        delay_ns = 50_000 + self.chance.below(int(self.latency_ms_max * 1e6) + 1)
        return delay_ns + (RESEND_NS if self.chance.below(64) == 0 else 0)

    def _note(self, line: str) -> None:
        self._trace.note(f"@{self._loop.time():.6f} {line}")


def _stop_timer(message: Message) -> None:
    if message.timer is not None:
        message.timer.cancel()
        message.timer = None
