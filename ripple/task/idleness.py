"""Which inputs are silent, and how far markers raise their watermarks: decisions, without a clock.

An input is silent once nothing has come from it for its source's ``idle``. Then a marker raises its
watermark, and again while it stays silent, each tenth of that span, as long as the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.model.batch import IdleMarker
from ripple.model.pipeline.input_names import source_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ripple.core.cut import Cut
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

# Of the span of silence, the part after which a marker may be repeated.
REPEAT_PART = 10


@dataclass(slots=True)
class _Silence:
    """since_ns: when the last record came. due_ns: when to look next; both monotonic."""

    idle_ns: int
    since_ns: int
    due_ns: int


class Idleness:
    """The silence of inputs, by the monotonic time that each call is given."""

    def __init__(self, plan: Plan, names: Iterable[str]) -> None:
        """names: of the inputs."""
        sources = {name: source_of(plan, name) for name in names}
        self._timed: dict[str, SourceSpec] = {
            name: source for name, source in sources.items() if source.time_field is not None
        }
        self._silences: dict[str, _Silence] = {}

    def begin(self, now_ns: int) -> None:
        """Count from now: an input whose reading begins is not silent yet."""
        self._silences = {
            name: _Silence(source.idle_ns, now_ns, now_ns + source.idle_ns)
            for name, source in self._timed.items()
            if source.idle_ns is not None
        }

    def came(self, name: str, now_ns: int) -> None:
        """Note that an input has given something."""
        silence = self._silences.get(name)
        if silence is not None:
            silence.since_ns, silence.due_ns = now_ns, now_ns + silence.idle_ns

    @property
    def due_ns(self) -> int | None:
        """When to look next; None if never."""
        return min((one.due_ns for one in self._silences.values()), default=None)

    def silent(self, now_ns: int) -> set[str]:
        """Return the inputs that are silent by now, if one is to be looked at; else none."""
        due_ns = self.due_ns
        return set() if due_ns is None or now_ns < due_ns else self.silent_at(now_ns)

    def silent_at(self, now_ns: int) -> set[str]:
        """Return the inputs that are silent by now."""
        return {
            name for name, one in self._silences.items() if one.since_ns + one.idle_ns <= now_ns
        }

    def looked(self, now_ns: int, *, is_seldom: bool = False) -> None:
        """Note that the inputs due by now were looked at.

        is_seldom: whether they are due again after the whole span of silence, not a part of it.
        """
        part = 1 if is_seldom else REPEAT_PART
        for one in self._silences.values():
            if one.due_ns <= now_ns:
                one.due_ns = now_ns + max(1, one.idle_ns // part)

    def may_rise(self, silent: Collection[str], watermarks_ns: Mapping[str, int]) -> bool:
        """Return False where no marker of some or all of the silent inputs raises a watermark.

        The other inputs hold them up then. Without such an input the wall clock counts.
        """
        others = [watermarks_ns[name] for name in self._timed if name not in silent]
        return not others or any(watermarks_ns[name] < min(others) for name in silent)

    def by_source(self, names: Iterable[str]) -> dict[str, int]:
        """Return how many of these inputs each source has that may have idle ones."""
        sources = {name: self._timed[name].name for name in self._silences}
        found = dict.fromkeys(sources.values(), 0)
        for name in names:
            found[sources[name]] += 1
        return found

    def markers(
        self,
        silent: Collection[str],
        cut: Cut,
        watermarks_ns: Mapping[str, int],
        wall_ns: int,
        next_offset: int,
    ) -> list[IdleMarker]:
        """Return the markers of silent inputs whose watermarks rise.

        cut, watermarks_ns: of the engine, by input. wall_ns: the wall clock, which counts where all
        inputs are silent. next_offset: of the log of markers.
        """
        others = [watermarks_ns[name] for name in self._timed if name not in silent]
        found: list[IdleMarker] = []
        for name in self._silences:
            if name not in silent:
                continue
            reached_ns = min(others, default=wall_ns - self._timed[name].out_of_order_ns)
            if reached_ns > watermarks_ns[name]:
                next_offset += 1
                found.append(IdleMarker(reached_ns, next_offset, name, cut[name]))
        return found
