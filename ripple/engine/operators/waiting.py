"""The contract of nodes that give rows by the watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.kernels.screen import Screen
    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.rows import RejectedRow, Rows
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.uncomputable import UncomputableRows
    from ripple.engine.snapshots.saving import SavedTable
    from ripple.model.pipeline.nodes import Fields
    from ripple.model.pipeline.waiting_nodes import Holding

    Ints = npt.NDArray[np.int64]
    Origins: TypeAlias = Iterator[tuple[str, Ints, Ints, Ints]]
    """Inputs, each with which rows are of it, their offsets and their indexes in their records."""


class ByInput(Protocol):
    """Finds the inputs of rows by their places."""

    def __call__(self, places: Ints) -> Origins:
        """Yield the inputs with rows at these places."""

    def only(self, places: Ints) -> tuple[str, int, int] | None:
        """Return the input of all rows at these places; None if they are of several.

        With it the place of its source's first record, and how many inputs that source has: see
        ``identities_of``.
        """

    def show(self, stream: StreamRows, rows: Rows) -> bool:
        """Show rows that are all of one input, if the stream takes them with their places alone."""


class Mark(Protocol):
    """Anything with a watermark: an input, or a node that waits."""

    @property
    def watermark_ns(self) -> int:
        """No row of it on time is missing below it."""


class Waiting(Mark, Protocol):
    """A node whose rows enter a stream by the watermark of its awaited inputs, each once."""

    given: int
    """The rows taken since the partition was restored here."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def take(self) -> Rows | None:
        """Return the next due rows, in their order; None if there are no more."""

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last, after steps; name: of the node in the plan."""

    def identities(self, rows: Rows) -> Ints | None:
        """Return the identities of some of the rows taken last, None where places tell them."""

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""


class Gate(NamedTuple):
    """The checks and limits of a source, by which its records count or not.

    places: of the columns in a batch. time: the field with the event time.
    """

    screen: Screen
    places: dict[str, int]
    time: str
    future_ns: int
    future_ns_max: int


class Side(Protocol):
    """An input of a node that holds rows; a join has two."""

    @property
    def reads(self) -> str:
        """The name of the node that it reads."""

    @property
    def reader(self) -> str:
        """Its own name, which no other node or side has."""

    @property
    def lateness_ns(self) -> int:
        """How far below the watermark a row still counts."""

    @property
    def key(self) -> Fields:
        """The fields by which it tells rows apart."""

    def admit(self, rows: Rows) -> None:
        """Reject rows that cannot be held, before any state changes."""

    def hold(self, rows: Rows, identities: Ints | None = None) -> None:
        """Hold rows of one batch; identities: where their places do not tell them."""

    def intake(self, gate: Gate) -> Intake | None:
        """Return the intake of whole batches of a source without rejected records; or None."""


class Holder(Waiting, Protocol):
    """A node that holds rows until the watermark decides."""

    @property
    def node(self) -> Holding:
        """The node of the plan."""

    @property
    def sides(self) -> Sequence[Side]:
        """Its inputs."""

    @property
    def waiting_count(self) -> int:
        """The rows held until the watermark has passed them."""

    @property
    def state(self) -> JoinState | None:
        """Where its sides are, of a join."""

    @property
    def lost(self) -> UncomputableRows:
        """Rows that a step behind it cannot take."""

    def savings(self) -> Sequence[SavedTable]:
        """Begin to dump the held rows, a table for each side."""

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""


class PlacedRows:
    """Rows of records, with their inputs and offsets in their places; some may be final rows.

    _finals: the node of these, "" without. identities_taken: of the rows taken last, where places
    do not tell them.
    """

    _by_input: ByInput
    _finals = ""
    identities_taken: Ints | None = None

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last, each by its input."""
        del name
        if self.identities_taken is not None or not self._by_input.show(stream, rows):
            assert rows.offsets is not None
            origins = self.origins_of(rows.offsets, self.identities(rows), self._finals)
            show_by_input(stream, rows, origins)

    def identities(self, rows: Rows) -> Ints | None:
        """Return the identities of some of the rows taken last, where places do not tell them."""
        return None if self.identities_taken is None else self.identities_taken[rows.origins]

    def origins_of(self, places: Ints, identities: Ints | None, finals: str) -> Origins:
        """Yield where rows are from.

        identities: of final rows, whose places do not tell; finals: the node of these.
        """
        found = list(self._by_input(places))
        yield from found
        if identities is not None and sum(len(one[1]) for one in found) < len(places):
            rest = np.ones(len(places), np.bool_)
            for one in found:
                rest[one[1]] = False
            at = np.flatnonzero(rest)
            yield finals, at, identities[at], places[at] % FLAT_ROWS_MAX


def settled_ns(watermark_ns: int, lateness_ns: int) -> int:
    """Return up to where nothing changes any more, by a watermark."""
    if watermark_ns in (watermark.NONE, watermark.END):
        return watermark_ns
    return max(watermark_ns - lateness_ns, watermark.NONE)


def show_by_input(stream: StreamRows, rows: Rows, origins: Origins) -> None:
    """Show rows in a stream, each by its input."""
    for of, at, offsets, indexes in origins:
        some = rows
        if len(at) < rows.count:
            some = rows.branch()
            mask = np.zeros(rows.count, np.bool_)
            mask[at] = True
            some.keep(mask)
        stream.add(of, some, offsets, indexes)
