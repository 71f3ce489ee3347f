"""The statistics of a run, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.core.arguments import plain
from ripple.model.window import watermark
from ripple.model.window.instant import instant_text

if TYPE_CHECKING:
    from ripple.engine.machine.partition import Partition

_LABEL_WIDTH = 18
_FUTURE = (
    " (applied and counted; further ahead of the watermark than a window's future= or table's "
    "ttl= allows)"
)
_OUT_OF_ORDER = (
    " (earlier than the row of their key, which they replace: the newest of .versions is another)"
)
_VERY_LATE = (
    " (not counted: further behind the watermark than lateness=; a larger out_of_order= of the "
    "source, or lateness=, counts them)"
)


def say_statistics(title: str, pairs: list[tuple[str, str]]) -> None:
    """Write labels and values, if any, below a title, aligned."""
    if pairs:
        say("\n".join([title, *(f"{label + ':':<{_LABEL_WIDTH}} {text}" for label, text in pairs)]))


def throughput(events: int, elapsed_s: float) -> list[tuple[str, str]]:
    """Return the elapsed time and the rate."""
    return [
        ("Elapsed", f"{elapsed_s:.3f}s"),
        ("Throughput", f"{events / elapsed_s:.0f} events/sec"),
    ]


def watermark_of(watermark_ns: int) -> list[tuple[str, str]]:
    """Return a watermark as a time; empty without timed events."""
    if watermark_ns == watermark.NONE:
        return []
    if watermark_ns == watermark.END:
        return [("Watermark", "past all events")]
    return [("Watermark", instant_text(watermark_ns))]


def uncomputable(engine: Partition, letters: str = "") -> list[tuple[str, str]]:
    """Return by node the number of rows that could not be computed, and the reason of one.

    letters: the command that lists the failed calls of asks; "" where they are not kept.
    """
    asks = {ask.name for ask in engine.plan.asks}
    lines = []
    for name, found in engine.uncomputable.items():
        text = f"{found.count} in {name!r}"
        if found.final:
            text += f", {found.final} of them final"
        for first in found.rows[:1]:
            text += f"; the first: key {first.key!r}, step {first.step!r}: {plain(first.reason)}"
        lines.append(("Not computed", text))
        if letters and name in asks:
            lines.append(("  failed calls", letters))
    return lines


def exceptions(engine: Partition) -> list[tuple[str, str]]:
    """Return the counts of late, future and rejected events, without zeros.

    Nothing depends on future events where no fold has a window, and out_of_order= may explain them.
    """
    counters = engine.counters
    future = counters.future if engine.plan.flags_future else 0
    kinds = (
        ("Mildly late", counters.mildly_late, ""),
        ("Very late", counters.very_late, _VERY_LATE),
        ("Future", future, _FUTURE),
        ("Rejected", counters.dead_lettered, ""),
    )
    found = [(label, f"{count}{remark}") for label, count, remark in kinds if count]
    tables = ((name, n) for name, n in engine.versions_out_of_order.items() if n)
    return found + [
        ("Out of order", f"{count} in {name!r}{_OUT_OF_ORDER}") for name, count in tables
    ]


def by_source(engine: Partition) -> list[tuple[str, str]]:
    """Return the counts of each source's records, where there are several sources."""
    counts = engine.counters_by_source
    if len(counts) < 2:
        return []
    return [
        (
            f"  {name}",
            f"{counters.consumed}: {counters.applied} applied, {counters.very_late} very late, "
            f"{counters.dead_lettered} rejected",
        )
        for name, counters in counts.items()
    ]
