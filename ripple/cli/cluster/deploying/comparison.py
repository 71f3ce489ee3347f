"""The rows that another generation would show, beside those that readers have, at the same cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.cli.cluster.deploying.counts import groups
from ripple.cli.cluster.deploying.standing import topic_at
from ripple.cli.lib.topic_rows import key_of, rows_of
from ripple.connectors.log.sink import committed_in, cuts_in
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.row_ops import OP
from ripple.task.published_rows import PublishedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.core.cut import Cut
    from ripple.model.schema.types import Field
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
    for own, others in groups(one.partitions, other.partitions):
        places = [*((one, number) for number in own), *((other, number) for number in others)]
        ends = _common(places)
        found.is_apart = found.is_apart or ends is None
        tables = [
            rows_of(topic, number, key_of(one), end).drop_columns(OP)
            for (topic, number), end in zip(places, ends or [None] * len(places), strict=True)
        ]
        was, now = pa.concat_tables(tables[: len(own)]), pa.concat_tables(tables[len(own) :])
        _compare(found, was, now, tuple(key_of(one)))
    return found


def _common(places: list[tuple[Topic, int]]) -> list[int | None] | None:
    """Return the ends of partitions' rows at their last common cut, None without one.

    Partitions at rest have no rows, and no influence on this cut.
    """
    known: list[dict[Any, int] | None] = []
    for topic, number in places:
        commit, found = committed_in(topic, number), cuts_in(topic, number, ROWS_BACK)
        is_at_rest = commit is not None and not commit.cut
        ends = {} if is_at_rest else {_key_of(cut): at for cut, at in found}
        known.append(None if is_at_rest else ends)
    for cut in reversed(list(known[-1] or ())):
        if all(one is None or cut in one for one in known):
            return [None if one is None else one[cut] for one in known]
    return None


def _key_of(cut: Cut) -> tuple[tuple[str, int], ...]:
    """Return a cut by source, which is equal for equal cuts by different paths of partitions."""
    return tuple(sorted((cuts.of_sources(cut) or cut).items()))


def _compare(found: Difference, was: pa.Table, now: pa.Table, key: tuple[Field, ...]) -> None:
    shown = PublishedRows(key)
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
