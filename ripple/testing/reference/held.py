"""The rows that nodes hold, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.waiting_nodes import StepScan
from ripple.testing.reference.interpreter import END_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.model.pipeline.waiting_nodes import Scan
    from ripple.testing.reference.steps import Row
    from ripple.testing.reference.windows import Key


@dataclass
class Held:
    """A row by its place, and by its key in a node that holds it; name: of the input it came by."""

    key: Key
    time_ns: int
    place: tuple[int, ...]
    name: str
    row: Row
    is_decided: bool = False

    @property
    def origin(self) -> tuple[str, int, int]:
        """Its input, and there its offset and index."""
        return self.name, self.place[1], self.place[3]

    def is_due(self, mark_ns: int) -> bool:
        """Return whether it is to be decided: it is final by the mark, and was not before."""
        return not self.is_decided and (self.time_ns < mark_ns or mark_ns == END_NS)


@dataclass
class Asked:
    """A row before its answer, with the watermark of its input before its record."""

    held: Held
    before_ns: int | None
    answer: Row | None = None
    reason: str = ""


def counted(node: Scan, rows: Sequence[Held]) -> Iterator[tuple[Held, Row]]:
    """Yield rows of a scan, given in their order, each with the values of its newest version."""
    of = node.version_of if isinstance(node, StepScan) else None
    versions: dict[Any, Row] = {}
    named = [(one.key, one.time_ns, None if of is None else one.row[of.name]) for one in rows]
    for one, name in zip(rows, named, strict=True):
        versions[name] = one.row
    for one, name in zip(rows, named, strict=True):
        if name[2] is None:
            yield one, one.row
        elif name in versions:
            yield one, versions.pop(name)
