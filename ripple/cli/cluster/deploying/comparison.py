"""The rows that another generation would show, beside those that readers have, at the same cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.cli.cluster.deploying.standing import topic_at
from ripple.cli.lib.topic_rows import key_of, rows_of
from ripple.connectors.log.sink import cuts_in
from ripple.core.errors import InputError
from ripple.core.row_ops import OP
from ripple.task.published_rows import PublishedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.storage.log import Topic

SAMPLE = 3
# How far back a common cut is looked for: each frame is read for its cut.
ROWS_BACK = 500


@dataclass(slots=True)
class Difference:
    """How the rows of an output change.

    is_apart: whether both are at other cuts, so that rows also differ by what one has read more.
    """

    output: str
    is_apart: bool = False
    rows: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    sample: tuple[dict[str, Any], ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether all compared rows are equal."""
        return not (self.added or self.removed or self.changed)

    def __str__(self) -> str:
        apart = ", and one of both has read more" if self.is_apart else ""
        counts = f"{self.added:,} added, {self.removed:,} removed, {self.changed:,} changed"
        found = "equal" if self.is_none else counts
        return f"output {self.output}: {self.rows:,} rows, {found}{apart}"


def difference(output: str, named: str, preview: str) -> Difference:
    """Compare each partition at the last cut of both topics, among their newest; else as they are.

    named, preview: URIs. Raises InputError and OutputError.
    """
    found = Difference(output)
    one, other = topic_at(named), topic_at(preview)
    if one is None or other is None:
        raise InputError(f"output {output!r} has no rows yet in {named}, or in its preview")
    for partition in range(one.partitions):
        ends = _common(one, other, partition)
        found.is_apart = found.is_apart or ends is None
        _compare(found, one, other, partition, ends or (None, None))
    return found


def _common(one: Topic, other: Topic, partition: int) -> tuple[int, int] | None:
    """Return the ends of the rows of both topics at their last common cut."""
    known = {tuple(sorted(cut.items())): end for cut, end in cuts_in(one, partition, ROWS_BACK)}
    for cut, end in reversed(list(cuts_in(other, partition, ROWS_BACK))):
        at = known.get(tuple(sorted(cut.items())))
        if at is not None:
            return at, end
    return None


def _compare(
    found: Difference,
    one: Topic,
    other: Topic,
    partition: int,
    ends: tuple[int | None, int | None],
) -> None:
    key = key_of(one)
    was = rows_of(one, partition, key, ends[0]).drop_columns(OP)
    now = rows_of(other, partition, key, ends[1]).drop_columns(OP)
    shown = PublishedRows(tuple(key))
    shown.there(was)
    differs = shown.settled(now)
    removed = shown.left().num_rows
    added = now.num_rows - (was.num_rows - removed)
    found.rows += was.num_rows
    found.added += added
    found.removed += removed
    found.changed += differs.num_rows - added
    left = SAMPLE - len(found.sample)
    found.sample += tuple(differs.slice(0, left).to_pylist())


def lines_of(differences: list[Difference]) -> Iterator[str]:
    """Yield what people are shown of differences."""
    for one in differences:
        yield str(one)
        yield from (f"  now {row}" for row in one.sample)
